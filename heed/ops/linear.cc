// activation(x w^T + b): bias and activation are applied to each tile of the product while it is in cache. With bf16 activations the
// product reads a bf16 copy of the weight; weight and gradient are f32.
#include "heed/core/arrived_gradient.h"
#include "heed/core/bf16_copy.h"
#include "heed/core/raw.h"
#include "heed/ops/activation_backward.h"
#include "heed/ops/gemm.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

Elementwise elementwise_of(Activation activation) {
  switch (activation) {
#define HEED_ELEMENTWISE_OF(Formula, function) \
  case Activation::function: return Elementwise::function;
    HEED_ACTIVATIONS(HEED_ELEMENTWISE_OF)
#undef HEED_ELEMENTWISE_OF
    case Activation::none: break;
  }
  fail("linear: there is no activation to apply");
}

GemmOperand operand(const Tensor& x, int64_t stride, bool transposed = false) {
  return {.data = Raw::bytes(x), .stride = stride, .transposed = transposed, .dtype = x.dtype()};
}

// What backward needs, besides x.
struct Layer {
  Tensor w, z;  // (O, I), (..., O): the result before the activation, or undefined
  Activation activation;
  int64_t rows, I, O;
};

// The gradient of the result before the activation, and of the bias if it needs one.
struct LinearGradient {
  Tensor dz, db;  // (..., O), (O)
};

// dz = g activation'(z), written over z if nothing else refers to it.
LinearGradient before_activation(const Layer& layer, const Tensor& g, bool need_bias) {
  const Tensor& z = layer.z;
  const auto bias_gradient = [&](const Tensor& dz) {
    return need_bias ? sum(reshape(dz, {layer.rows, layer.O}), {0}, false, DType::f32) : Tensor();
  };
  if (!z.defined()) return {g, bias_gradient(g)};
  const Tensor dz = final_backward() && z.owns_data_alone() ? z : Tensor::empty(z.shape(), z.dtype(), z.device());
  const Elementwise op = elementwise_of(layer.activation);
  if (!need_bias || z.count() == 0) {
    launch(elementwise_backward, z.device(),
           {.op = op, .x = Raw::bytes(z), .g = Raw::bytes(g), .dx = Raw::bytes(dz), .count = z.count(), .dtype = z.dtype()});
    return {dz, bias_gradient(dz)};
  }
  const Tensor db = Tensor::empty({layer.O}, DType::f32, z.device());
  launch(activation_backward, z.device(),
         {.op = op,
          .z = Raw::bytes(z),
          .g = Raw::bytes(g),
          .dz = Raw::bytes(dz),
          .db = raw<float>(db),
          .rows = layer.rows,
          .columns = layer.O,
          .dtype = z.dtype()});
  return {dz, db};
}

// dz w. On GPUs the product adds it to what has arrived; on the CPU that would round sums differently.
Tensor input_gradient(const Layer& layer, const Tensor& dz, const Shape& shape) {
  const auto [rows, I, O] = std::tuple(layer.rows, layer.I, layer.O);
  const Tensor arrived = dz.device() == kCpu ? Tensor() : take_arrived_gradient(0, dz.dtype());
  const Tensor dx = arrived.defined() ? arrived : Tensor::empty(shape, dz.dtype(), dz.device());
  launch(gemm, dz.device(),
         {.M = rows, .N = I, .K = O, .a = operand(dz, O), .b = operand(layer.w, I), .c = operand(dx, I), .add = arrived.defined()});
  return dx;
}

Tensor weight_gradient(const Layer& layer, const Tensor& dz, const Tensor& x) {
  const auto [rows, I, O] = std::tuple(layer.rows, layer.I, layer.O);
  const Tensor dw = Tensor::empty({O, I}, DType::f32, dz.device());
  launch(gemm, dz.device(), {.M = O, .N = I, .K = rows, .a = operand(dz, O, true), .b = operand(x, I), .c = operand(dw, I)});
  return dw;
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, Activation activation) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return linear(wide, weight, bias, activation); });
  if (is_half(weight) || is_half(bias)) return linear(input, widen(weight), widen(bias), activation);
  check(weight.rank() == 2, "linear: the weight has shape ", weight.shape(), ", expected (outputs, inputs)");
  check(input.rank() >= 1 && input.size(-1) == weight.size(1), "linear: x has ", input.rank() ? input.size(-1) : 0, " columns, the weight ",
        weight.size(1));
  check(!bias.defined() || (bias.rank() == 1 && bias.size(0) == weight.size(0)), "linear: the bias has shape ",
        bias.defined() ? bias.shape() : Shape{}, ", the weight ", weight.shape());
  const Device device = common_device("linear", {&input, &weight, &bias});
  const Tensor x = dense_storage("linear", input), wide = dense_f32("linear", weight);
  const bool keeps_copies = x.dtype() == DType::bf16 && (device != kCpu || weight.needs_grad());
  const Tensor w = keeps_copies ? bf16_copy(wide) : wide;
  const Tensor b = bias.defined() ? dense_f32("linear", bias) : Tensor();
  const Tensor narrow = device != kCpu && keeps_copies && b.defined() ? bf16_copy(b) : Tensor();
  const Bf16* const narrow_bias = narrow.defined() && narrow.dtype() == DType::bf16 ? raw<Bf16>(narrow) : nullptr;
  const int64_t I = w.size(1), O = w.size(0), rows = count_rows(x);
  Shape shape = x.shape();
  shape[x.rank() - 1] = O;

  const bool tracked = bias.defined() ? tracking({&input, &weight, &bias}) : tracking({&input, &weight});
  const bool active = activation != Activation::none;
  const Tensor y = Tensor::empty(shape, x.dtype(), device), z = tracked && active ? Tensor::empty(shape, x.dtype(), device) : Tensor();
  launch(gemm, device,
         {.M = rows,
          .N = O,
          .K = I,
          .a = operand(x, I),
          .b = operand(w, I, true),
          .c = operand(y, O),
          .bias = raw_or_null<float>(b),
          .narrow_bias = narrow_bias,
          .activation = activation,
          .z = Raw::bytes_or_null(z)});
  if (!tracked) return y;

  Tensors inputs{input, weight};
  if (bias.defined()) inputs.push_back(bias);
  const auto backward = [saved = SavedInput(input, x), layer = Layer{w, z, activation, rows, I, O}, x_shape = x.shape(),
                         need_x = input.needs_grad(), need_w = weight.needs_grad(), has_bias = bias.defined(),
                         need_bias = bias.defined() && bias.needs_grad()](const Tensor& gradient) {
    const auto [dz, db] = before_activation(layer, contiguous(gradient), need_bias);
    Grads grads(has_bias ? 3 : 2);
    if (need_x) grads[0] = input_gradient(layer, dz, x_shape);
    if (need_w) grads[1] = weight_gradient(layer, dz, contiguous(saved.get()));
    if (need_bias) grads[2] = db;
    return grads;
  };
  Tensor out = record(op::linear, y, std::move(inputs), backward);
  if (!active) return out;
  return with_recompute(std::move(out), [z, activation] {
    const Tensor again = Tensor::empty(z.shape(), z.dtype(), z.device());
    launch(elementwise_forward, z.device(),
           {.op = elementwise_of(activation), .x = Raw::bytes(z), .y = Raw::bytes(again), .count = z.count(), .dtype = z.dtype()});
    return again;
  });
}

}  // namespace heed
