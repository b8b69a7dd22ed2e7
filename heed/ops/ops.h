// All ops, with gradients unless stated otherwise. One file per family has formula, kernel and gradient.
// Half-precision inputs are widened to f32, computed, and narrowed to the dtype of the first input.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "heed/core/api.h"
#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "heed/ops/activation.h"
#include "heed/ops/elementwise.h"

// The ops below that record a gradient. Tests iterate over this list and that of elementwise.h: an op without a test case does not link.
// clang-format off
#define HEED_OPS(X)                                                                                                    \
  X(reshape) X(permute) X(slice) X(expand) X(cast)                                                                     \
  X(add) X(subtract) X(multiply) X(divide) X(scale)                                                                    \
  X(matmul) X(linear)                                                                                                  \
  X(softmax) X(log_softmax)                                                                                            \
  X(layer_norm) X(add_layer_norm) X(rms_norm) X(batch_norm)                                                            \
  X(embedding) X(index_select)                                                                                         \
  X(cross_entropy) X(linear_cross_entropy) X(mean_squared_error)                                                       \
  X(dropout)                                                                                                           \
  X(sum) X(mean) X(max) X(variance)                                                                                    \
  X(concat) X(split) X(stack)                                                                                          \
  X(where) X(masked_fill) X(pad)                                                                                       \
  X(conv2d) X(max_pool2d)
// clang-format on

namespace HEED_API heed {

namespace op {
#define HEED_NAME(name) inline constexpr OpName name{#name};
HEED_OPS(HEED_NAME)
#undef HEED_NAME
}  // namespace op

// --- views: only reshape may copy -------------------------------------------------------------------------------- view.cc
Tensor reshape(const Tensor& x, Shape shape);  // one size may be -1
// Axis i of the result is axis axes[i] of x.
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
Tensor permute(const Tensor& x, std::span<const int> axes);
Tensor transpose(const Tensor& x, int a, int b);                                        // exchanges two axes
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end, int64_t step = 1);  // negative: from the end
Tensor expand(const Tensor& x, const Shape& shape);                                     // repeats axes of size 1
Tensor cast(const Tensor& x, DType dtype);                                              // converts the elements

// --- arithmetic with broadcasting -------------------------------------------------------------------------------- binary.cc
// a and b broadcast against each other: axes are aligned at the last, and an axis of size 1 is repeated.
Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);
Tensor scale(const Tensor& x, float factor, float shift = 0);  // factor x + shift

// The same as operators.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
inline Tensor operator*(const Tensor& x, float factor) { return scale(x, factor); }
inline Tensor operator*(float factor, const Tensor& x) { return scale(x, factor); }

// --- matrix products --------------------------------------------------------------------------------- matmul.cc, linear.cc
// a: (..., M, K), b: (..., K, N) -> (..., M, N); leading axes broadcast. A transposed view costs no copy.
Tensor matmul(const Tensor& a, const Tensor& b);

// activation(x w^T + b). x: (..., I), w: (O, I), b: (O) or undefined -> (..., O)
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = {}, Activation activation = Activation::none);

// --- normalisation ------------------------------------------------------------------------------- softmax.cc, norm.cc, batch_norm.cc
Tensor softmax(const Tensor& x, int axis = -1);      // e^x / sum of e^x along the axis. x: any shape -> the same shape
Tensor log_softmax(const Tensor& x, int axis = -1);  // its logarithm
// Over the last axis. x: (..., D), w, b: (D)
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, float eps = 1e-5f);
// s = x + residual and layer_norm(s), in one pass.
std::pair<Tensor, Tensor> add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& w, const Tensor& b, float eps = 1e-5f);
Tensor rms_norm(const Tensor& x, const Tensor& w, float eps = 1e-6f);  // x / sqrt(mean(x^2) + eps) * w

// The state of a batch norm (Ioffe and Szegedy 2015). In training, batches are normalised by their own statistics.
struct BatchNorm {
  Tensor running_mean{}, running_variance{};  // (C), updated in training
  bool training = true;
  float momentum = 0.1f, eps = 1e-5f;
};
// x: (B, C, ...), w, b: (C); statistics over every axis but C.
Tensor batch_norm(const Tensor& x, const Tensor& w, const Tensor& b, const BatchNorm& state);

// --- lookups ------------------------------------------------------------------------------------------------------- index.cc
Tensor embedding(const Tensor& table, const Tensor& indices);           // table: (V, D), indices: (...) i64 or i32 -> (..., D)
Tensor index_select(const Tensor& x, int axis, const Tensor& indices);  // indices: (K): those slices of x, in that order

// --- losses -------------------------------------------------------------------------------------------------------- loss.cc
// Options of the cross-entropy. Targets with ignore_index do not count; label_smoothing: share of the target spread over all classes.
struct CrossEntropy {
  int64_t ignore_index = -100;
  float label_smoothing = 0;
  Tensor class_weights;  // (C) or undefined
};
// Mean over the targets that are not ignored (weighted by class when weights are given). logits: (..., C), targets: (...) i64
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options = {});
// cross_entropy(linear(x, w, b), targets, options), but never stores all logits. x: (rows, D), w: (C, D), b: (C) or
// undefined
Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& targets, const CrossEntropy& options = {});
Tensor mean_squared_error(const Tensor& a, const Tensor& b);  // mean of (a - b)^2 -> ()

// --- random -------------------------------------------------------------------------------------------------------- dropout.cc
// Zeroes each element with probability p and scales the others by 1/(1-p). The mask is recomputed in backward, not saved.
Tensor dropout(const Tensor& x, float p, Rng& rng);

// --- reductions ---------------------------------------------------------------------------------------------------- reduce.cc
using Axes = std::vector<int>;  // empty: all axes
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep = false,
           std::optional<DType> dtype = {});                             // dtype: of the result, if not that of x
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep = false);  // over the axes; keep: they stay, with size 1
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep = false);   // equal maxima share the gradient
Tensor variance(const Tensor& x, const Axes& axes = {}, bool keep = false,
                bool unbiased = false);              // mean of (x - mean)^2; unbiased: divided by n - 1
Tensor sum_to(const Tensor& x, const Shape& shape);  // reverses a broadcast: sums what expand() repeated
Tensor argmax(const Tensor& x, int axis = -1);       // i64, no gradient; the first of equal maxima

// --- concatenation, selection, padding --------------------------------------------------------- join.cc, choose.cc, pad.cc
// concat joins tensors along an axis, split reverses it (sizes: of the parts), stack joins them along a new axis.
Tensor concat(const Tensors& parts, int axis);
Tensors split(const Tensor& x, std::span<const int64_t> sizes, int axis);
Tensor stack(const Tensors& parts, int axis);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);                             // condition: bool; all broadcast
Tensor masked_fill(const Tensor& x, const Tensor& mask, float value);                                // value where the mask is true
Tensor pad(const Tensor& x, std::span<const std::array<int64_t, 2>> before_after, float value = 0);  // a pair per axis

// --- images ----------------------------------------------------------------------------------------- conv.cc, pool.cc
// Rows first, then columns. groups: channels of a group see only inputs of the same group.
struct Conv2d {
  std::array<int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};
// x: (B, C, Y, X), w: (O, C / groups, KY, KX), b: (O) or undefined
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b = {}, const Conv2d& options = {});

// Rows first, then columns.
struct Pool2d {
  std::array<int64_t, 2> kernel{2, 2}, stride{2, 2}, padding{0, 0};
};
Tensor max_pool2d(const Tensor& x, const Pool2d& options = {});  // (B, C, Y, X) -> the largest of every window; (B, C, Y', X')

}  // namespace heed
