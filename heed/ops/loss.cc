// Losses. Cross-entropy keeps one number per row (log-sum-exp) and computes the probabilities again for the gradient.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/loss.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/row_reduce.h"

#include <numeric>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/loss.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class T>
void entropy_rows(const EntropyForward& e) {
  parallel_for(e.rows, rows_per_task(e.C), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t target = e.targets[row];
      e.costs[row] = 0;
      if (target == e.ignore_index) continue;
      const T* x = static_cast<const T*>(e.x) + row * e.C;
      const float row_max = max_over(e.C, [&](int64_t i, auto load) HEED_LANES { return load(x + i); });
      const float row_sum = sum_over(e.C, [&](int64_t i, auto load) HEED_LANES { return exp_below(load(x + i) - row_max); });
      const float lse = row_max + std::log(row_sum);
      e.lse[row] = lse;
      e.costs[row] = (1 - e.smoothing) * (e.weights ? e.weights[target] : 1.0f) * (lse - convert<float>(x[target]));
      if (e.smoothing == 0) continue;
      const float others = sum_over(e.C, [&](int64_t i, auto load) HEED_LANES {
        const Lanes cost = lse - load(x + i);
        return e.weights ? cost * load(e.weights + i) : cost;
      });
      e.costs[row] += e.smoothing / static_cast<float>(e.C) * others;
    }
  });
}

// dx = factor ((1 - s) w_t (p - 1[c = t]) + s / C (p sum(w) - w))
template <class T>
void entropy_row_gradients(const EntropyBackward& e) {
  const auto factor = static_cast<float>((e.g ? *e.g : 1.0f) / e.totals->counted), classes = static_cast<float>(e.totals->classes);
  const float spread = e.smoothing / static_cast<float>(e.C);
  parallel_for(e.rows, rows_per_task(e.C), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t target = e.targets[row];
      const T* x = static_cast<const T*>(e.x) + row * e.C;
      T* dx = static_cast<T*>(e.dx) + row * e.C;
      if (target == e.ignore_index) {
        std::fill_n(dx, e.C, T{});
        continue;
      }
      const float pull = factor * (1 - e.smoothing) * (e.weights ? e.weights[target] : 1.0f);
      const Lanes lse = e.lse[row], scale = pull + factor * spread * classes, even = factor * spread;
      const auto at_target = [&](auto p) HEED_LANES { return e.smoothing == 0 ? p : p - (e.weights ? even * e.weights[target] : even); };
      const Lanes here = at_target(exp_below(repeated(x + target) - lse) * scale) - pull;  // before dx, which may be x, is written
      for_lanes(e.C, [&](int64_t i, auto load, auto store) HEED_LANES {
        const Lanes p = exp_below(load(x + i) - lse) * scale;
        store(dx + i, e.smoothing == 0 ? p : p - (e.weights ? even * load(e.weights + i) : even));
      });
      store_some(here, dx + target, 1);
    }
  });
}

template <class T>
void square_sums(const SquaredErrorForward& e, double* sums) {
  const T *a = static_cast<const T*>(e.a), *b = static_cast<const T*>(e.b);
  parallel_for(e.count, e.kPiece, [&](int64_t begin, int64_t end) HWY_ATTR {
    sums[begin / e.kPiece] = sum_over(end - begin, [&](int64_t i, auto load) HEED_LANES {
      const Lanes d = load(a + begin + i) - load(b + begin + i);
      return d * d;
    });
  });
}

template <class T>
void square_gradients(const SquaredErrorBackward& e) {
  const auto factor = static_cast<float>(2.0 * *e.g / static_cast<double>(e.count));
  const T *a = static_cast<const T*>(e.a), *b = static_cast<const T*>(e.b);
  T* da = static_cast<T*>(e.da);
  parallel_for(e.count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(end - begin, [&](int64_t i, auto load, auto store)
                               HEED_LANES { store(da + begin + i, (load(a + begin + i) - load(b + begin + i)) * factor); });
  });
}

void entropy_all(const EntropyForward& e) {
  with_storage(e.dtype, [&]<class T>(T) { entropy_rows<T>(e); });
}
void entropy_gradient_all(const EntropyBackward& e) {
  with_storage(e.dtype, [&]<class T>(T) { entropy_row_gradients<T>(e); });
}
void square_all(const SquaredErrorForward& e) {
  double* sums = static_cast<double*>(e.workspace);
  with_storage(e.dtype, [&]<class T>(T) { square_sums<T>(e, sums); });
  *e.loss = static_cast<float>(std::accumulate(sums, sums + (e.count + e.kPiece - 1) / e.kPiece, 0.0) / static_cast<double>(e.count));
}
void square_gradient_all(const SquaredErrorBackward& e) {
  with_storage(e.dtype, [&]<class T>(T) { square_gradients<T>(e); });
}

void scale_all_in_place(const ScaleInPlace& s) {
  if (*s.factor == 1) return;
  with_storage(s.dtype, [&]<class T>(T) {
    T* x = static_cast<T*>(s.x);
    parallel_for(s.count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
      for_lanes(end - begin, [&](int64_t i, auto load, auto store) HEED_LANES { store(x + begin + i, load(x + begin + i) * *s.factor); });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(entropy_all);
HWY_EXPORT(entropy_gradient_all);
HWY_EXPORT(square_all);
HWY_EXPORT(square_gradient_all);
HWY_EXPORT(scale_all_in_place);

void cpu::entropy_forward(const EntropyForward& args) { HWY_DYNAMIC_DISPATCH(entropy_all)(args); }
void cpu::entropy_backward(const EntropyBackward& args) { HWY_DYNAMIC_DISPATCH(entropy_gradient_all)(args); }
void cpu::squared_error_forward(const SquaredErrorForward& args) { HWY_DYNAMIC_DISPATCH(square_all)(args); }
void cpu::squared_error_backward(const SquaredErrorBackward& args) { HWY_DYNAMIC_DISPATCH(square_gradient_all)(args); }
void cpu::scale_in_place(const ScaleInPlace& args) { HWY_DYNAMIC_DISPATCH(scale_all_in_place)(args); }

void cpu::entropy_sums(const EntropySums& e) {
  const auto weight = [&](int64_t c) { return e.weights ? e.weights[c] : 1.0f; };
  EntropyTotals totals{};
  for (int64_t row = 0; row < e.rows; ++row) {
    const int64_t target = e.targets[row];
    if (target == e.ignore_index) continue;
    check(target >= 0 && target < e.C, "cross_entropy: target ", target, " at position ", row, ", expected 0 to ", e.C - 1);
    totals.counted += weight(target);
  }
  check(totals.counted > 0, "cross_entropy: every target is ignored, there is nothing to average");
  for (int64_t c = 0; c < e.C; ++c) totals.classes += weight(c);
  *e.totals = totals;
}

void cpu::entropy_mean(const EntropyMean& e) {
  *e.loss = static_cast<float>(std::accumulate(e.costs, e.costs + e.rows, 0.0) / e.totals->counted);
}

EntropyRows::EntropyRows(const char* op, const Tensor& given, int64_t classes, const CrossEntropy& options)
    : device(given.device()), rows(given.count()), C(classes), ignore_index(options.ignore_index), smoothing(options.label_smoothing) {
  check(!is_floating(given.dtype()), op, ": targets are ", name_of(given.dtype()), ", expected whole numbers");
  check(smoothing >= 0 && smoothing <= 1, op, ": label smoothing ", smoothing, ", expected 0 to 1");
  weights = options.class_weights.defined() ? dense_f32(op, options.class_weights) : Tensor();
  check(!weights.defined() || weights.shape() == Shape{C}, op, ": class weights ", weights.defined() ? weights.shape() : Shape{}, " for ",
        C, " classes");
  common_device(op, {&given, &weights});
  targets = contiguous(converted(given, DType::i64));
  lse = Tensor::empty({rows}, DType::f32, device);
  costs = Tensor::empty({rows}, DType::f32, device);
  totals = Tensor::empty({static_cast<int64_t>(sizeof(EntropyTotals))}, DType::u8, device);
  launch(heed::entropy_sums, device,
         {.targets = raw<int64_t>(targets),
          .weights = raw_or_null<float>(weights),
          .totals = reinterpret_cast<EntropyTotals*>(Raw::bytes(totals)),
          .rows = rows,
          .C = C,
          .ignore_index = ignore_index});
}

void EntropyRows::forward(const void* x, DType dtype, int64_t begin, int64_t end) const {
  launch(heed::entropy_forward, device,
         {.x = x,
          .targets = raw<int64_t>(targets) + begin,
          .weights = raw_or_null<float>(weights),
          .costs = raw<float>(costs) + begin,
          .lse = raw<float>(lse) + begin,
          .rows = end - begin,
          .C = C,
          .ignore_index = ignore_index,
          .smoothing = smoothing,
          .dtype = dtype});
}

void EntropyRows::backward(const void* x, const float* g, void* dx, DType dtype, int64_t begin, int64_t end) const {
  launch(heed::entropy_backward, device,
         {.x = x,
          .targets = raw<int64_t>(targets) + begin,
          .weights = raw_or_null<float>(weights),
          .lse = raw<float>(lse) + begin,
          .totals = reinterpret_cast<const EntropyTotals*>(Raw::bytes(totals)),
          .g = g,
          .dx = dx,
          .rows = end - begin,
          .C = C,
          .ignore_index = ignore_index,
          .smoothing = smoothing,
          .dtype = dtype});
}

Tensor EntropyRows::loss() const {
  const Tensor out = Tensor::empty({}, DType::f32, device);
  launch(heed::entropy_mean, device,
         {.costs = raw<float>(costs),
          .totals = reinterpret_cast<const EntropyTotals*>(Raw::bytes(totals)),
          .loss = raw<float>(out),
          .rows = rows});
  return out;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options) {
  if (is_half(logits)) return in_f32(logits, [&](const Tensor& wide) { return cross_entropy(wide, targets, options); });
  check(logits.rank() == targets.rank() + 1, "cross_entropy: logits ", logits.shape(), " for targets ", targets.shape(),
        ", expected one axis more");
  for (int axis = 0; axis < targets.rank(); ++axis)
    check(logits.size(axis) == targets.size(axis), "cross_entropy: logits ", logits.shape(), " for targets ", targets.shape());
  common_device("cross_entropy", {&logits, &targets});
  const EntropyRows entropy("cross_entropy", targets, logits.size(-1), options);
  const Tensor x = dense_storage("cross_entropy", logits);
  entropy.forward(Raw::bytes(x), x.dtype(), 0, entropy.rows);
  return record(op::cross_entropy, entropy.loss(), {logits}, [x, entropy](const Tensor& gradient) {
    const Tensor g = converted(gradient, DType::f32);
    const Tensor dx = final_backward() && x.owns_data_alone() ? x : Tensor::empty(x.shape(), x.dtype(), x.device());
    entropy.backward(Raw::bytes(x), raw<float>(g), Raw::bytes(dx), x.dtype(), 0, entropy.rows);
    return Grads{dx};
  });
}

Tensor mean_squared_error(const Tensor& left, const Tensor& right) {
  if (is_half(left) || is_half(right)) return cast(mean_squared_error(widen(left), widen(right)), left.dtype());
  check(left.shape() == right.shape(), "mean_squared_error: shapes ", left.shape(), " and ", right.shape());
  check(left.count() > 0, "mean_squared_error: the tensors are empty");
  const Device device = common_device("mean_squared_error", {&left, &right});
  const Tensor a = dense_storage("mean_squared_error", left), b = dense_storage("mean_squared_error", right);
  const Tensor loss = Tensor::empty({}, DType::f32, device);
  launch(squared_error_forward, device,
         {.a = Raw::bytes(a), .b = Raw::bytes(b), .loss = raw<float>(loss), .count = a.count(), .dtype = a.dtype()});
  return record(op::mean_squared_error, loss, {left, right}, [a, b, device](const Tensor& gradient) {
    const Tensor g = converted(gradient, DType::f32), da = Tensor::empty(a.shape(), a.dtype(), device);
    launch(squared_error_backward, device,
           {.a = Raw::bytes(a), .b = Raw::bytes(b), .g = raw<float>(g), .da = Raw::bytes(da), .count = a.count(), .dtype = a.dtype()});
    return Grads{da, scale(da, -1)};
  });
}

}  // namespace heed
#endif
