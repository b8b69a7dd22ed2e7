// Layer norm (Ba et al. 2016), with a residual added on the way, and rms norm (Zhang and Sennrich 2019).
// Gradients of weight and bias are summed in fixed blocks of rows, then over the blocks.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/norm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/row_reduce.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/norm.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// y of a row whose mean and rstd are known.
template <bool centred, class T>
HWY_INLINE void scale_row(const NormForward& n, const T* x, int64_t row) {
  const Lanes mean = centred ? n.mean[row] : 0.0f, rstd = n.rstd[row];
  T* y = static_cast<T*>(n.y) + row * n.D;
  const bool streaming = n.rows * n.D >= kStreamFrom && n.D % kLanes == 0;
  for_lanes(streaming, n.D, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes normal = (load(x + i) - mean) * rstd;
    if constexpr (centred) {
      store(y + i, fma(normal, load(n.weight + i), load(n.bias + i)));
    } else {
      store(y + i, normal * load(n.weight + i));
    }
  });
}

template <bool centred, class T>
HWY_INLINE void norm_row(const NormForward& n, int64_t row) {
  const int64_t D = n.D;
  const T* x = static_cast<const T*>(n.x) + row * D;
  if (n.known) return scale_row<centred>(n, x, row);
  if (n.residual) {
    T* sum = static_cast<T*>(n.sum) + row * D;
    const T* residual = static_cast<const T*>(n.residual) + row * D;
    for_lanes(D, [&](int64_t i, auto load, auto store) HEED_LANES { store(sum + i, load(x + i) + load(residual + i)); });
    x = sum;
  }
  float mean = 0;
  if constexpr (centred) mean = sum_over(D, [&](int64_t i, auto load) HEED_LANES { return load(x + i); }) / static_cast<float>(D);
  const Lanes middle = mean;
  const float squares = sum_over(D, [&](int64_t i, auto load) HEED_LANES {
    const Lanes d = load(x + i) - middle;
    return d * d;
  });
  if constexpr (centred) n.mean[row] = mean;
  n.rstd[row] = 1 / std::sqrt(squares / static_cast<float>(D) + n.eps);
  scale_row<centred>(n, x, row);
}

// Calls visit(is layer norm or rms norm, storage type) with both as types.
template <class Args, class Visit>
void with_norm(const Args& n, const Visit& visit) {
  with_storage(n.dtype, [&]<class T>(T) { n.mean ? visit(std::true_type(), T()) : visit(std::false_type(), T()); });
}

void norm_forward_all(const NormForward& n) {
  with_norm(n, [&]<class Centred, class T>(Centred, T) {
    parallel_for(n.rows, rows_per_task(n.D), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin; row < end; ++row) norm_row<Centred::value, T>(n, row);
    });
  });
}

// With z = (x - mean) rstd and h = g w:  dx = rstd (h - mean(h) - z mean(h z));  dw = sum g z;  db = sum g.
// Adds this row's part to dw and db.
template <bool centred, class T>
HWY_INLINE void norm_row_back(const NormBackward& n, int64_t row, float* dw, float* db) {
  const int64_t D = n.D;
  const T *x = static_cast<const T*>(n.x) + row * D, *g = static_cast<const T*>(n.g) + row * D;
  const T* g_sum = n.g_sum ? static_cast<const T*>(n.g_sum) + row * D : nullptr;
  T* dx = static_cast<T*>(n.dx) + row * D;
  const Lanes mean = centred ? n.mean[row] : 0.0f, rstd = n.rstd[row];
  Lanes sum_hz = 0, sum_h = 0;
  for_lanes(D, [&](int64_t i, auto load, auto store) HEED_LANES {  // lanes after the row load zeros: g is zero there, so they add nothing
    const Lanes gradient = load(g + i), z = (load(x + i) - mean) * rstd, h = gradient * load(n.weight + i);
    store(dw + i, fma(gradient, z, load(dw + i)));
    sum_hz = fma(h, z, sum_hz);
    if constexpr (centred) {
      store(db + i, load(db + i) + gradient);
      sum_h = sum_h + h;
    }
  });
  const Lanes mean_hz = sum(sum_hz) / static_cast<float>(D), mean_h = centred ? sum(sum_h) / static_cast<float>(D) : 0.0f;
  const bool streaming = n.rows * D >= kStreamFrom && D % kLanes == 0;
  for_lanes(streaming, D, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes z = (load(x + i) - mean) * rstd;
    const Lanes d = rstd * (load(g + i) * load(n.weight + i) - mean_h - z * mean_hz);
    store(dx + i, g_sum ? d + load(g_sum + i) : d);
  });
}

void norm_backward_all(const NormBackward& n) {
  const int64_t D = n.D, block = n.rows_per_block(), blocks = (n.rows + block - 1) / block;
  float* parts = static_cast<float*>(n.workspace);  // (blocks, 2, D)
  with_norm(n, [&]<class Centred, class T>(Centred, T) {
    parallel_tasks(blocks, [&](int64_t task) HWY_ATTR {
      float *dw = parts + task * 2 * D, *db = dw + D;
      std::fill_n(dw, 2 * D, 0.0f);
      for (int64_t row = task * block; row < std::min(n.rows, (task + 1) * block); ++row) norm_row_back<Centred::value, T>(n, row, dw, db);
    });
  });
  for_lanes(D, [&](int64_t i, auto load, auto store) HEED_LANES {
    Lanes dw = 0, db = 0;
    for (int64_t task = 0; task < blocks; ++task) {
      dw = dw + load(parts + task * 2 * D + i);
      db = db + load(parts + task * 2 * D + D + i);
    }
    store(n.dw + i, dw);
    if (n.db) store(n.db + i, db);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(norm_forward_all);
HWY_EXPORT(norm_backward_all);

void cpu::norm_forward(const NormForward& args) { HWY_DYNAMIC_DISPATCH(norm_forward_all)(args); }
void cpu::norm_backward(const NormBackward& args) { HWY_DYNAMIC_DISPATCH(norm_backward_all)(args); }

namespace {

void check_width(const char* op, const Tensor& x, const Tensor& w, const char* what) {
  check(x.rank() >= 1 && w.rank() == 1 && w.size(0) == x.size(-1), op, ": x has shape ", x.shape(), ", the ", what, " ", w.shape());
}

// The result of a normalisation, and what its gradient needs.
struct Normalised {
  Tensor y, x, w, b, mean, rstd;  // x: what was normalised, with the residual if there is one; mean: undefined for rms norm
  int64_t rows, D;
};

// residual and b may be undefined; without b there is no mean either.
Normalised normalise(const char* op, const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias, float eps) {
  const bool centred = bias.defined();
  check_width(op, input, weight, "weight");
  if (centred) check_width(op, input, bias, "bias");
  const Device device = common_device(op, {&input, &residual, &weight, &bias});
  const Tensor x = dense_storage(op, input), r = residual.defined() ? dense_storage(op, residual) : Tensor();
  const Tensor w = dense_f32(op, weight), b = centred ? dense_f32(op, bias) : Tensor();
  const int64_t D = x.size(-1), rows = x.count() / std::max<int64_t>(D, 1);
  const Tensor sum = r.defined() ? Tensor::empty(x.shape(), x.dtype(), device) : Tensor();
  const Normalised n{.y = Tensor::empty(x.shape(), x.dtype(), device),
                     .x = sum.defined() ? sum : x,
                     .w = w,
                     .b = b,
                     .mean = centred ? Tensor::empty({rows}, DType::f32, device) : Tensor(),
                     .rstd = Tensor::empty({rows}, DType::f32, device),
                     .rows = rows,
                     .D = D};
  launch(norm_forward, device,
         {.x = Raw::bytes(x),
          .residual = Raw::bytes_or_null(r),
          .weight = raw<float>(w),
          .bias = raw_or_null<float>(b),
          .sum = Raw::bytes_or_null(sum),
          .y = Raw::bytes(n.y),
          .mean = raw_or_null<float>(n.mean),
          .rstd = raw<float>(n.rstd),
          .rows = rows,
          .D = D,
          .eps = eps,
          .dtype = x.dtype(),
          .known = false});
  return n;
}

// {dx, dw, db or nothing}; g_sum, the other gradient of x + residual, may be undefined.
Grads norm_gradients(const Normalised& n, const Tensor& gradient, const Tensor& g_sum = {}) {
  const Device device = n.x.device();
  const Tensor g = contiguous(gradient), extra = g_sum.defined() ? contiguous(g_sum) : Tensor();
  Grads grads{Tensor::empty(n.x.shape(), n.x.dtype(), device), Tensor::empty({n.D}, DType::f32, device),
              n.mean.defined() ? Tensor::empty({n.D}, DType::f32, device) : Tensor()};
  launch(norm_backward, device,
         {.x = Raw::bytes(n.x),
          .g = Raw::bytes(g),
          .g_sum = Raw::bytes_or_null(extra),
          .weight = raw<float>(n.w),
          .mean = raw_or_null<float>(n.mean),
          .rstd = raw<float>(n.rstd),
          .dx = Raw::bytes(grads[0]),
          .dw = raw<float>(grads[1]),
          .db = raw_or_null<float>(grads[2]),
          .rows = n.rows,
          .D = n.D,
          .dtype = n.x.dtype()});
  return grads;
}

// The gradient needs what was normalised, not the result.
Normalised saved(Normalised n) {
  n.y = {};
  return n;
}

// Can be recomputed: everything needed is saved for the gradient anyway.
Tensor cheap(Tensor out, const Normalised& n) {
  if (!out.needs_grad()) return out;
  return with_recompute(std::move(out), [n = saved(n)] {
    const Tensor y = Tensor::empty(n.x.shape(), n.x.dtype(), n.x.device());
    launch(norm_forward, n.x.device(),
           {.x = Raw::bytes(n.x),
            .residual = nullptr,
            .weight = raw<float>(n.w),
            .bias = raw_or_null<float>(n.b),
            .sum = nullptr,
            .y = Raw::bytes(y),
            .mean = raw_or_null<float>(n.mean),
            .rstd = raw<float>(n.rstd),
            .rows = n.rows,
            .D = n.D,
            .eps = 0,
            .dtype = n.x.dtype(),
            .known = true});
    return y;
  });
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, float eps) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return layer_norm(wide, weight, bias, eps); });
  if (is_half(weight) || is_half(bias)) return layer_norm(input, widen(weight), widen(bias), eps);
  check(bias.defined(), "layer_norm: the bias is not defined; rms_norm is the norm without one");
  const Normalised n = normalise("layer_norm", input, {}, weight, bias, eps);
  return cheap(record(op::layer_norm, n.y, {input, weight, bias}, [n = saved(n)](const Tensor& g) { return norm_gradients(n, g); }), n);
}

std::pair<Tensor, Tensor> add_layer_norm(const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias, float eps) {
  if (input.dtype() == DType::f16) {
    const auto [s, y] = add_layer_norm(widen(input), residual, weight, bias, eps);
    return {cast(s, input.dtype()), cast(y, input.dtype())};
  }
  if (residual.dtype() != input.dtype() || is_half(weight) || is_half(bias))
    return add_layer_norm(input, cast(residual, input.dtype()), widen(weight), widen(bias), eps);
  check(bias.defined(), "add_layer_norm: the bias is not defined");
  check(input.shape() == residual.shape(), "add_layer_norm: x has shape ", input.shape(), ", the residual ", residual.shape());
  const Normalised n = normalise("add_layer_norm", input, residual, weight, bias, eps);
  const Tensors outs = record_all(op::add_layer_norm, {n.x, n.y}, {input, residual, weight, bias}, [n = saved(n)](const Grads& gs) {
    if (!gs[1].defined()) return Grads{gs[0], gs[0], Tensor(), Tensor()};
    const Grads back = norm_gradients(n, gs[1], gs[0]);
    return Grads{back[0], back[0], back[1], back[2]};
  });
  return {outs[0], cheap(outs[1], n)};
}

Tensor rms_norm(const Tensor& input, const Tensor& weight, float eps) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return rms_norm(wide, weight, eps); });
  if (is_half(weight)) return rms_norm(input, widen(weight), eps);
  const Normalised n = normalise("rms_norm", input, {}, weight, {}, eps);
  return cheap(record(op::rms_norm, n.y, {input, weight},
                      [n = saved(n)](const Tensor& g) {
                        Grads grads = norm_gradients(n, g);
                        grads.pop_back();
                        return grads;
                      }),
               n);
}

}  // namespace heed
#endif
