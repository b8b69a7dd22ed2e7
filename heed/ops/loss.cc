// Losses. Cross-entropy keeps one number per row (log-sum-exp) and computes the probabilities again for the gradient.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/loss.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/rows.h"

#include <numeric>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/entropy.h"
#include "heed/ops/half.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Fills costs: (rows), zero where the target is ignored, and log_total.
void entropy_forward(const Entropy& e, float* costs) {
  parallel_for(e.rows, rows_per_task(e.C), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t target = e.targets[row];
      costs[row] = 0;
      if (target == e.ignore_index) continue;
      const float* x = e.x + row * e.C;
      const float top = max_over(e.C, [&](int64_t i, auto load) HEED_LANES { return load(x + i); });
      const float total = sum_over(e.C, [&](int64_t i, auto load) HEED_LANES { return exp_below(load(x + i) - top); });
      const float log_total = top + std::log(total);
      e.log_total[row] = log_total;
      costs[row] = (1 - e.smoothing) * e.weight_of(target) * (log_total - x[target]);
      if (e.smoothing == 0) continue;
      const float others = sum_over(e.C, [&](int64_t i, auto load) HEED_LANES {
        const Lanes cost = log_total - load(x + i);
        return e.weights ? cost * load(e.weights + i) : cost;
      });
      costs[row] += e.smoothing / static_cast<float>(e.C) * others;
    }
  });
}

// dx = factor ((1 - s) w_t (p - 1[c = t]) + s / C (p sum(w) - w))
void entropy_gradient(const Entropy& e, float factor, float weight_total, float* dx) {
  const float spread = e.smoothing / static_cast<float>(e.C);
  parallel_for(e.rows, rows_per_task(e.C), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t target = e.targets[row];
      const float* x = e.x + row * e.C;
      float* to = dx + row * e.C;
      if (target == e.ignore_index) {
        std::fill_n(to, e.C, 0.0f);
        continue;
      }
      const float pull = factor * (1 - e.smoothing) * e.weight_of(target);
      const Lanes log_total = e.log_total[row], scale = pull + factor * spread * weight_total, even = factor * spread;
      for_lanes(e.C, [&](int64_t i, auto load, auto store) HEED_LANES {
        const Lanes p = exp_below(load(x + i) - log_total) * scale;
        store(to + i, e.smoothing == 0 ? p : p - (e.weights ? even * load(e.weights + i) : even));
      });
      to[target] -= pull;
    }
  });
}

// Sums of squares of a - b over pieces of `piece` elements. sums: one per piece
void square_sums(const float* a, const float* b, double* sums, int64_t count, int64_t piece) {
  parallel_for(count, piece, [&](int64_t begin, int64_t end) HWY_ATTR {
    sums[begin / piece] = sum_over(end - begin, [&](int64_t i, auto load) HEED_LANES {
      const Lanes d = load(a + begin + i) - load(b + begin + i);
      return d * d;
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(entropy_forward);
HWY_EXPORT(entropy_gradient);
HWY_EXPORT(square_sums);

void entropy_costs(const Entropy& e, float* costs) { HWY_DYNAMIC_DISPATCH(entropy_forward)(e, costs); }

void entropy_gradients(const Entropy& e, float factor, double weights, float* dx) {
  HWY_DYNAMIC_DISPATCH(entropy_gradient)(e, factor, static_cast<float>(weights), dx);
}

EntropyTotals totals_of(const Entropy& e) {
  EntropyTotals totals{};
  for (int64_t row = 0; row < e.rows; ++row) {
    const int64_t target = e.targets[row];
    if (target == e.ignore_index) continue;
    check(target >= 0 && target < e.C, "cross_entropy: target ", target, " at position ", row, ", expected 0 to ", e.C - 1);
    totals.counted += e.weight_of(target);
  }
  check(totals.counted > 0, "cross_entropy: every target is ignored, there is nothing to average");
  for (int64_t c = 0; c < e.C; ++c) totals.weights += e.weight_of(c);
  return totals;
}

Tensor checked_weights(const char* op, const CrossEntropy& options, const Tensor& targets, int64_t C) {
  check(!is_floating(targets.dtype()), op, ": targets are ", name_of(targets.dtype()), ", expected whole numbers");
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1, op, ": label smoothing ", options.label_smoothing,
        ", expected 0 to 1");
  const Tensor weights = options.class_weights.defined() ? dense_f32(op, options.class_weights) : Tensor();
  check(!weights.defined() || weights.shape() == Shape{C}, op, ": class weights ", weights.defined() ? weights.shape() : Shape{}, " for ",
        C, " classes");
  return weights;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options) {
  if (is_half(logits)) return in_f32(logits, [&](const Tensor& wide) { return cross_entropy(wide, targets, options); });
  check(logits.rank() == targets.rank() + 1, "cross_entropy: logits ", logits.shape(), " for targets ", targets.shape(),
        ", expected one axis more");
  for (int axis = 0; axis < targets.rank(); ++axis)
    check(logits.size(axis) == targets.size(axis), "cross_entropy: logits ", logits.shape(), " for targets ", targets.shape());
  const Tensor weights = checked_weights("cross_entropy", options, targets, logits.size(-1));
  const Tensor x = dense_f32("cross_entropy", logits), t = contiguous(converted(targets, DType::i64));
  const int64_t rows = t.count();
  const Tensor log_total = Tensor::empty({rows}), costs = Tensor::empty({rows});
  const Entropy e{.x = raw<float>(x),
                  .targets = raw<int64_t>(t),
                  .weights = weights.defined() ? raw<float>(weights) : nullptr,
                  .log_total = raw<float>(log_total),
                  .rows = rows,
                  .C = x.size(-1),
                  .ignore_index = options.ignore_index,
                  .smoothing = options.label_smoothing};
  const EntropyTotals totals = totals_of(e);
  entropy_costs(e, raw<float>(costs));
  const double total = std::accumulate(raw<float>(costs), raw<float>(costs) + rows, 0.0);
  return record(op::cross_entropy, Tensor::full({}, total / totals.counted), {logits},
                [x, t, weights, log_total, e, totals](const Tensor& g) {
                  const Tensor dx = last_walk() && x.owns_data_alone() ? x : Tensor::empty(x.shape());
                  entropy_gradients(e, static_cast<float>(g.item() / totals.counted), totals.weights, raw<float>(dx));
                  return Grads{dx};
                });
}

Tensor mean_squared_error(const Tensor& left, const Tensor& right) {
  if (is_half(left) || is_half(right)) return cast(mean_squared_error(widen(left), widen(right)), left.dtype());
  check(left.shape() == right.shape(), "mean_squared_error: shapes ", left.shape(), " and ", right.shape());
  check(left.count() > 0, "mean_squared_error: the tensors are empty");
  const Tensor a = dense_f32("mean_squared_error", left), b = dense_f32("mean_squared_error", right);
  constexpr int64_t piece = 1 << 13;
  std::vector<double> sums(static_cast<size_t>((a.count() + piece - 1) / piece));
  HWY_DYNAMIC_DISPATCH(square_sums)(raw<float>(a), raw<float>(b), sums.data(), a.count(), piece);
  double total = 0;
  for (double part : sums) total += part;
  return record(op::mean_squared_error, Tensor::full({}, total / static_cast<double>(a.count())), {left, right}, [a, b](const Tensor& g) {
    const Tensor da = scale(subtract(a, b), static_cast<float>(2.0 * g.item() / static_cast<double>(a.count())));
    return Grads{da, scale(da, -1)};
  });
}

}  // namespace heed
#endif
