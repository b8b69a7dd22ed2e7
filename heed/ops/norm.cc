// Layer norm (Ba et al. 2016), with a residual added on the way, and rms norm (Zhang and Sennrich 2019).
// Gradients of weight and bias are summed in fixed blocks of rows, then over the blocks.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/norm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/rows.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/half.h"
#include "heed/ops/ops.h"

#ifndef HEED_OPS_NORM_TYPES
#define HEED_OPS_NORM_TYPES
namespace heed {

// Pointers of one normalisation. Rms norm has no residual, bias or mean.
struct NormForward {
  const float *x, *residual, *w, *b;  // (rows, D), (rows, D) or null, (D), (D) or null
  float *sum, *y;                     // x + residual or null, (rows, D)
  float *mean, *scale;                // (rows); scale = 1 / sqrt(variance + eps)
  int64_t rows, D;
  float eps;
};

struct NormBackward {
  const float *x, *w, *g, *g_sum;  // g_sum: (rows, D), what flows into x + residual from elsewhere, or null
  const float *mean, *scale;
  float *dx, *dw, *db;  // db null for rms norm
  int64_t rows, D;
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// y of a row whose mean and scale are known.
template <bool centred>
HWY_INLINE void finish_row(const NormForward& n, const float* x, int64_t row) {
  const Lanes middle = centred ? n.mean[row] : 0.0f, factor = n.scale[row];
  float* y = n.y + row * n.D;
  const bool stream = n.rows * n.D >= kStreamFrom && n.D % kLanes == 0;
  for_lanes(stream, n.D, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes normal = (load(x + i) - middle) * factor;
    if constexpr (centred) {
      store(y + i, fma(normal, load(n.w + i), load(n.b + i)));
    } else {
      store(y + i, normal * load(n.w + i));
    }
  });
}

template <bool centred>
HWY_INLINE void norm_row(const NormForward& n, int64_t row) {
  const int64_t D = n.D;
  const float* x = n.x + row * D;
  if (n.residual) {
    float* sum = n.sum + row * D;
    const float* residual = n.residual + row * D;
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
  const float scale = 1 / std::sqrt(squares / static_cast<float>(D) + n.eps);
  if constexpr (centred) n.mean[row] = mean;
  n.scale[row] = scale;
  finish_row<centred>(n, x, row);
}

// y of what was normalised before, bit for bit.
void norm_again(const NormForward& n, bool centred) {
  parallel_for(n.rows, rows_per_task(n.D), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      if (centred) {
        finish_row<true>(n, n.x + row * n.D, row);
      } else {
        finish_row<false>(n, n.x + row * n.D, row);
      }
    }
  });
}

void norm_forward(const NormForward& n, bool centred) {
  parallel_for(n.rows, rows_per_task(n.D), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      if (centred) {
        norm_row<true>(n, row);
      } else {
        norm_row<false>(n, row);
      }
    }
  });
}

// With z = (x - mean) scale and h = g w:  dx = scale (h - mean(h) - z mean(h z));  dw = sum g z;  db = sum g.
// Adds this row's part to dw and db.
template <bool centred>
HWY_INLINE void norm_row_back(const NormBackward& n, int64_t row, float* dw, float* db) {
  const int64_t D = n.D;
  const float *x = n.x + row * D, *g = n.g + row * D, *g_sum = n.g_sum ? n.g_sum + row * D : nullptr;
  float* dx = n.dx + row * D;
  const Lanes middle = centred ? n.mean[row] : 0.0f, factor = n.scale[row];
  Lanes with_z = 0, alone = 0;
  const int64_t step = lane_count();
  int64_t i = 0;
  const auto gather = [&](int64_t at, auto load, auto store) HEED_LANES {
    const Lanes gradient = load(g + at), z = (load(x + at) - middle) * factor, h = gradient * load(n.w + at);
    store(dw + at, fma(gradient, z, load(dw + at)));
    with_z = fma(h, z, with_z);
    if constexpr (centred) {
      store(db + at, load(db + at) + gradient);
      alone = alone + h;
    }
  };
  for (; i + step <= D; i += step)
    gather(
        i, [](const float* p) HEED_LANES { return Lanes::load(p); }, [](float* p, Lanes v) HEED_LANES { v.store(p); });
  if (i < D) {  // lanes behind the row load zeros: g is zero there, so they add nothing
    const int64_t rest = D - i;
    gather(
        i, [=](const float* p) HEED_LANES { return load_some(p, rest); }, [=](float* p, Lanes v) HEED_LANES { store_some(v, p, rest); });
  }
  const Lanes mean_hz = sum(with_z) / static_cast<float>(D), mean_h = centred ? sum(alone) / static_cast<float>(D) : 0.0f;
  const bool stream = n.rows * D >= kStreamFrom && D % kLanes == 0;
  for_lanes(stream, D, [&](int64_t at, auto load, auto store) HEED_LANES {
    const Lanes z = (load(x + at) - middle) * factor;
    const Lanes d = factor * (load(g + at) * load(n.w + at) - mean_h - z * mean_hz);
    store(dx + at, g_sum ? d + load(g_sum + at) : d);
  });
}

void norm_backward(const NormBackward& n, bool centred) {
  const int64_t D = n.D, block = std::max<int64_t>({rows_per_task(D), (n.rows + 31) / 32, 1}), blocks = (n.rows + block - 1) / block;
  const Tensor partial = Tensor::empty({std::max<int64_t>(blocks, 1), 2, D});
  float* parts = raw<float>(partial);
  parallel_tasks(blocks, [&](int64_t task) HWY_ATTR {
    float *dw = parts + task * 2 * D, *db = dw + D;
    std::fill_n(dw, 2 * D, 0.0f);
    for (int64_t row = task * block; row < std::min(n.rows, (task + 1) * block); ++row) {
      if (centred) {
        norm_row_back<true>(n, row, dw, db);
      } else {
        norm_row_back<false>(n, row, dw, db);
      }
    }
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

HWY_EXPORT(norm_forward);
HWY_EXPORT(norm_again);
HWY_EXPORT(norm_backward);

namespace {

void check_width(const char* op, const Tensor& x, const Tensor& w, const char* what) {
  check(x.rank() >= 1 && w.rank() == 1 && w.size(0) == x.size(-1), op, ": x has shape ", x.shape(), ", the ", what, " ", w.shape());
}

// One normalisation: its result, and what the gradient needs of it.
struct Normalised {
  Tensor y, x, w, b, mean, scale;  // x: what was normalised, with the residual if there is one; mean: undefined for rms norm
  int64_t rows, D;
};

// residual and b may be undefined; without b there is no mean either.
Normalised normalise(const char* op, const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias, float eps) {
  const bool centred = bias.defined();
  check_width(op, input, weight, "weight");
  if (centred) check_width(op, input, bias, "bias");
  const auto dense = [&](const Tensor& x) { return x.defined() ? dense_f32(op, x) : Tensor(); };
  const auto pointer = [](const Tensor& x) { return x.defined() ? raw<float>(x) : nullptr; };
  const Tensor x = dense(input), r = dense(residual), w = dense(weight), b = dense(bias);
  const int64_t D = x.size(-1), rows = x.count() / std::max<int64_t>(D, 1);
  const Tensor sum = r.defined() ? Tensor::empty(x.shape()) : Tensor();
  const Normalised n{.y = Tensor::empty(x.shape()),
                     .x = sum.defined() ? sum : x,
                     .w = w,
                     .b = b,
                     .mean = centred ? Tensor::empty({rows}) : Tensor(),
                     .scale = Tensor::empty({rows}),
                     .rows = rows,
                     .D = D};
  HWY_DYNAMIC_DISPATCH(norm_forward)
  ({.x = raw<float>(x),
    .residual = pointer(r),
    .w = raw<float>(w),
    .b = pointer(b),
    .sum = pointer(sum),
    .y = raw<float>(n.y),
    .mean = pointer(n.mean),
    .scale = raw<float>(n.scale),
    .rows = rows,
    .D = D,
    .eps = eps},
   centred);
  return n;
}

// {dx, dw, db or nothing}; g_sum, what flows into x + residual from elsewhere, may be undefined.
Grads norm_gradients(const Normalised& n, const Tensor& gradient, const Tensor& g_sum = {}) {
  const bool centred = n.mean.defined();
  const Tensor g = contiguous(gradient), extra = g_sum.defined() ? contiguous(g_sum) : Tensor();
  Grads grads{Tensor::empty(n.x.shape()), Tensor::empty({n.D}), centred ? Tensor::empty({n.D}) : Tensor()};
  HWY_DYNAMIC_DISPATCH(norm_backward)
  ({.x = raw<float>(n.x),
    .w = raw<float>(n.w),
    .g = raw<float>(g),
    .g_sum = extra.defined() ? raw<float>(extra) : nullptr,
    .mean = centred ? raw<float>(n.mean) : nullptr,
    .scale = raw<float>(n.scale),
    .dx = raw<float>(grads[0]),
    .dw = raw<float>(grads[1]),
    .db = centred ? raw<float>(grads[2]) : nullptr,
    .rows = n.rows,
    .D = n.D},
   centred);
  return grads;
}

// The gradient needs what was normalised, not the result.
Normalised saved(Normalised n) {
  n.y = {};
  return n;
}

// With a recipe: all that it needs is kept for the gradient.
Tensor cheap(Tensor out, const Normalised& n) {
  if (!out.needs_grad()) return out;
  return with_recipe(std::move(out), [n = saved(n)] {
    const bool centred = n.mean.defined();
    const Tensor y = Tensor::empty(n.x.shape());
    HWY_DYNAMIC_DISPATCH(norm_again)
    ({.x = raw<float>(n.x),
      .residual = nullptr,
      .w = raw<float>(n.w),
      .b = centred ? raw<float>(n.b) : nullptr,
      .sum = nullptr,
      .y = raw<float>(y),
      .mean = centred ? raw<float>(n.mean) : nullptr,
      .scale = raw<float>(n.scale),
      .rows = n.rows,
      .D = n.D,
      .eps = 0},
     centred);
    return y;
  });
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, float eps) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return layer_norm(wide, widen(weight), widen(bias), eps); });
  check(bias.defined(), "layer_norm: the bias is not defined; rms_norm is the norm without one");
  const Normalised n = normalise("layer_norm", input, {}, weight, bias, eps);
  return cheap(record(op::layer_norm, n.y, {input, weight, bias}, [n = saved(n)](const Tensor& g) { return norm_gradients(n, g); }), n);
}

std::pair<Tensor, Tensor> add_layer_norm(const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias, float eps) {
  if (is_half(input)) {
    const auto [s, y] = add_layer_norm(widen(input), widen(residual), widen(weight), widen(bias), eps);
    return {cast(s, input.dtype()), cast(y, input.dtype())};
  }
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
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return rms_norm(wide, widen(weight), eps); });
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
