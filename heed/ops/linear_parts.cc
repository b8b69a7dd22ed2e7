#include "heed/ops/linear_parts.h"

#include <algorithm>

#include "heed/core/arrived_gradient.h"
#include "heed/core/bf16_copy.h"
#include "heed/core/raw.h"
#include "heed/ops/gemm.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"
#include "heed/ops/windows.h"

namespace heed {
namespace {

// The layers as one.
struct JoinedLayers {
  Tensor w;                         // (O, I) bf16
  std::vector<int64_t> sizes = {};  // O_i
  int64_t rows, I, O;
  Shape x_shape = {}, y_shape = {};  // (..., I), (..., O)
  bool need_x = false;
  std::vector<bool> need_w = {}, need_b = {};
};

bool any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

GemmOperand dense_operand(const Tensor& x, int64_t columns, bool transposed = false) {
  return {.data = Raw::bytes(x), .stride = columns, .transposed = transposed, .dtype = x.dtype()};
}

// The windows of x along an axis.
Tensors windows_of(const Tensor& x, const std::vector<int64_t>& sizes, int axis) {
  const NoGrad quiet;
  return split(x, sizes, axis);
}

// gs: (..., O_i), some undefined -> (rows, O). Without a copy where attention has written them side by side.
Tensor joined_gradient(const JoinedLayers& layers, const Grads& gs) {
  const Shape& shape = layers.y_shape;
  const Tensor whole = joined_windows(gs, shape.rank() - 1);
  if (whole.defined()) return whole.view({layers.rows, layers.O}, {layers.O, 1});
  const bool complete = std::all_of(gs.begin(), gs.end(), [](const Tensor& g) { return g.defined(); });
  const Device device = layers.w.device();
  const Tensor out = complete ? Tensor::empty(shape, DType::bf16, device) : Tensor::zeros(shape, DType::bf16, device);
  const Tensors windows = windows_of(out, layers.sizes, shape.rank() - 1);
  for (size_t i = 0; i < gs.size(); ++i)
    if (gs[i].defined()) copy_into(gs[i], windows[i]);
  return out.view({layers.rows, layers.O}, {layers.O, 1});
}

// dz w, added to what has arrived. -> (..., I)
Tensor joined_input_gradient(const JoinedLayers& layers, const Tensor& dz) {
  const Tensor arrived = take_arrived_gradient(0, DType::bf16);
  const Tensor dx = arrived.defined() ? arrived : Tensor::empty(layers.x_shape, DType::bf16, dz.device());
  launch(gemm, dz.device(),
         {.M = layers.rows,
          .N = layers.I,
          .K = layers.O,
          .a = dense_operand(dz, layers.O),
          .b = dense_operand(layers.w, layers.I),
          .c = dense_operand(dx, layers.I),
          .add = arrived.defined()});
  return dx;
}

// dz^T x -> (O, I)
Tensor joined_weight_gradient(const JoinedLayers& layers, const Tensor& dz, const Tensor& x) {
  const Tensor dw = Tensor::empty({layers.O, layers.I}, DType::f32, dz.device());
  launch(gemm, dz.device(),
         {.M = layers.O,
          .N = layers.I,
          .K = layers.rows,
          .a = dense_operand(dz, layers.O, true),
          .b = dense_operand(x, layers.I),
          .c = dense_operand(dw, layers.I)});
  return dw;
}

// Of x, the weights and the biases. gs: (..., O_i), some undefined; x: (..., I)
Grads gradients_of_parts(const JoinedLayers& layers, const Grads& gs, const SavedInput& x) {
  const Tensor dz = joined_gradient(layers, gs);
  Grads grads{layers.need_x ? joined_input_gradient(layers, dz) : Tensor()};
  const auto add_parts = [&](const Tensor& whole, const std::vector<bool>& needed) {
    const Tensors parts = windows_of(whole, layers.sizes, 0);
    for (size_t i = 0; i < parts.size(); ++i) grads.push_back(needed[i] ? parts[i] : Tensor());
  };
  if (any(layers.need_w))
    add_parts(joined_weight_gradient(layers, dz, contiguous(x.get())), layers.need_w);
  else
    grads.resize(1 + layers.sizes.size());
  if (any(layers.need_b))
    add_parts(sum(dz, {0}, false, DType::f32), layers.need_b);
  else
    grads.resize(1 + layers.sizes.size() + layers.need_b.size());
  returns_separate_gradients();
  return grads;
}

}  // namespace

Tensors linear_parts(const Tensor& input, const Tensors& weights, const Tensors& biases) {
  check(!weights.empty() && weights.size() == biases.size(), "linear_parts: ", weights.size(), " weights and ", biases.size(), " biases");
  const Device device = input.device();
  const bool with_bias = biases[0].defined();
  const auto fits = [&](const Tensor& w, const Tensor& b) {
    return w.rank() == 2 && w.dtype() == DType::f32 && w.is_contiguous() && w.size(1) == input.size(-1) && w.count() > 0 &&
           b.defined() == with_bias && (!with_bias || (b.dtype() == DType::f32 && b.shape() == Shape{w.size(0)} && b.is_contiguous()));
  };
  if (device == kCpu || input.dtype() != DType::bf16) return {};
  for (size_t i = 0; i < weights.size(); ++i)
    if (!fits(weights[i], biases[i])) return {};
  const Tensor w = joined_bf16_copy(weights), b = with_bias ? joined_bf16_copy(biases) : Tensor();
  if (!w.defined() || b.defined() != with_bias) return {};
  common_device("linear_parts", {&input, &w, &b});

  const Tensor x = dense_storage("linear_parts", input);
  JoinedLayers layers{.w = w,
                      .rows = count_rows(x),
                      .I = w.size(1),
                      .O = w.size(0),
                      .x_shape = x.shape(),
                      .y_shape = x.shape(),
                      .need_x = input.needs_grad()};
  layers.y_shape[x.rank() - 1] = layers.O;
  Tensors inputs{input};
  for (const Tensor& weight : weights) {
    layers.sizes.push_back(weight.size(0));
    layers.need_w.push_back(weight.needs_grad());
    inputs.push_back(weight);
  }
  for (const Tensor& bias : biases) {
    if (!with_bias) break;
    layers.need_b.push_back(bias.needs_grad());
    inputs.push_back(bias);
  }
  const Tensor y = Tensor::empty(layers.y_shape, DType::bf16, device);
  launch(gemm, device,
         {.M = layers.rows,
          .N = layers.O,
          .K = layers.I,
          .a = dense_operand(x, layers.I),
          .b = dense_operand(w, layers.I, true),
          .c = dense_operand(y, layers.O),
          .narrow_bias = with_bias ? raw<Bf16>(b) : nullptr});
  const auto back = [layers, saved = any(layers.need_w) ? SavedInput(input, x) : SavedInput()](const Grads& gs) {
    return gradients_of_parts(layers, gs, saved);
  };
  return record_all(op::linear, windows_of(y, layers.sizes, x.rank() - 1), std::move(inputs), back);
}

}  // namespace heed
