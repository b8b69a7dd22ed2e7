// The ceilings, and ops on shapes of ViT-B and of a ViT for CIFAR. Tensors that are only streamed are larger than the caches.
#include <memory>

#include "bench/gpu.h"
#include "heed/core/random.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer.h"

namespace heed::bench {
namespace {

double numbers(const Shape& shape) { return static_cast<double>(count(shape)); }

GpuLine product_line(int64_t size, const GpuSetup& setup) {
  const Shape square{size, size};
  return {.name = name_of("product/forward", {size, size, size}),
          .make =
              [=] {
                return gpu_forward_call({gpu_random(square, setup), gpu_random(square, setup)},
                                        [](const Tensors& t) { return matmul(t[0], t[1]); });
              },
          .flops = 2 * numbers(square) * static_cast<double>(size)};
}

GpuLine copy_line(int64_t size, const GpuSetup& setup) {
  return {.name = name_of("copy/forward", {size}),
          .make = [=]() -> Call {
            return [from = gpu_random({size}, setup, DType::f32), to = Tensor::empty({size}, DType::f32, setup.device)] {
              copy_into(from, to);
            };
          },
          .bytes = 2 * sizeof(float) * static_cast<double>(size)};
}

// bf16 activations, f32 parameters, as in training.
GpuLine linear_line(int64_t rows, int64_t in, int64_t out, const GpuSetup& setup) {
  return {.name = name_of("linear/forward", {rows, in, out}),
          .make =
              [=] {
                return gpu_forward_call(
                    {gpu_random({rows, in}, setup), gpu_random({out, in}, setup, DType::f32), gpu_random({out}, setup, DType::f32)},
                    [](const Tensors& t) { return linear(t[0], t[1], t[2]); });
              },
          .flops = 2 * numbers({rows, in}) * static_cast<double>(out),
          .bytes = 2 * (numbers({rows, in}) + numbers({rows, out}) + numbers({in, out}))};
}

// An op on x of this shape, forward and backward. `parameters`: shapes of its f32 parameters. Forward reads x and writes as much, or only a
// number if `reduces`; backward reads x and the gradient, if it is as large, and writes the gradient of x.
void add_streams(GpuLines& lines, const std::string& op, const Shape& x, DType dtype, const std::vector<Shape>& parameters,
                 const Function& function, bool reduces, const GpuSetup& setup) {
  const double bytes = numbers(x) * static_cast<double>(bytes_of(dtype));
  const auto inputs = [=] {
    Tensors made{gpu_random(x, setup, dtype)};
    for (const Shape& shape : parameters) made.push_back(gpu_random(shape, setup, DType::f32));
    return made;
  };
  lines.push_back({.name = name_of(op + "/forward", x),
                   .make = [=] { return gpu_forward_call(inputs(), function); },
                   .bytes = (reduces ? 1 : 2) * bytes});
  lines.push_back({.name = name_of(op + "/backward", x),
                   .make = [=] { return gpu_backward_call(inputs(), function, setup); },
                   .bytes = (reduces ? 2 : 3) * bytes});
}

// Parameters of a ViT with 16 x 16 patches of 3 channels and 1000 classes: 86 million with 12 layers of width 768.
std::vector<Shape> vit_shapes(int64_t layers, int64_t width) {
  const int64_t D = width, wide = 4 * D;
  std::vector<Shape> shapes{{D, 768}, {D}, {D}, {197, D}, {D}, {D}, {1000, D}, {1000}};
  for (int64_t i = 0; i < layers; ++i)
    for (const Shape& shape : {Shape{D, D}, Shape{D}, Shape{D, D}, Shape{D}, Shape{D, D}, Shape{D}, Shape{D, D}, Shape{D}, Shape{wide, D},
                               Shape{wide}, Shape{D, wide}, Shape{D}, Shape{D}, Shape{D}, Shape{D}, Shape{D}})
      shapes.push_back(shape);
  return shapes;
}

// The gradient of a bias: sums of columns, in f32.
GpuLine column_sum_line(int64_t rows, int64_t columns, const GpuSetup& setup) {
  return {.name = name_of("column_sum/forward", {rows, columns}),
          .make =
              [=] {
                return gpu_forward_call({gpu_random({rows, columns}, setup)},
                                        [](const Tensors& t) { return sum(t[0], {0}, false, DType::f32); });
              },
          .bytes = 2 * numbers({rows, columns})};
}

// activation(x w^T + b) of a feed-forward block, and its gradients: 3 products, and a pass over the result that reads it and its gradient
// and writes another one.
void add_gelu_layer(GpuLines& lines, int64_t rows, int64_t in, int64_t out, const GpuSetup& setup) {
  const auto inputs = [=] {
    return Tensors{gpu_random({rows, in}, setup), gpu_random({out, in}, setup, DType::f32), gpu_random({out}, setup, DType::f32)};
  };
  const Function function = [](const Tensors& t) { return linear(t[0], t[1], t[2], Activation::gelu); };
  const double operations = 2 * numbers({rows, in}) * static_cast<double>(out);
  lines.push_back({.name = name_of("linear_gelu/forward", {rows, in, out}),
                   .make =
                       [=] {
                         Tensors leaves = inputs();
                         for (Tensor& leaf : leaves) leaf.require_grad();
                         return [=] { function(leaves); };
                       },
                   .flops = operations});
  lines.push_back({.name = name_of("linear_gelu/backward", {rows, in, out}),
                   .make = [=] { return gpu_backward_call(inputs(), function, setup); },
                   .flops = 2 * operations});
}

// s = x + branch and the norm of s; backward with gradients of both.
void add_residual_norm(GpuLines& lines, const Shape& x, const GpuSetup& setup) {
  const auto inputs = [=] {
    return Tensors{gpu_random(x, setup), gpu_random(x, setup), gpu_random({x[1]}, setup, DType::f32),
                   gpu_random({x[1]}, setup, DType::f32)};
  };
  lines.push_back(
      {.name = name_of("add_layer_norm/forward", x),
       .make = [=] { return gpu_forward_call(inputs(), [](const Tensors& t) { return add_layer_norm(t[0], t[1], t[2], t[3]).second; }); },
       .bytes = 4 * 2 * numbers(x)});
  lines.push_back({.name = name_of("add_layer_norm/backward", x),
                   .make = [=]() -> Call {
                     Tensors leaves = inputs();
                     for (Tensor& leaf : leaves) leaf.require_grad();
                     const auto [s, y] = add_layer_norm(leaves[0], leaves[1], leaves[2], leaves[3]);
                     const Tensor both = stack({s, y}, 0), seed = gpu_random(both.shape(), setup);
                     return [=] {
                       backward(both, seed, true);
                       for (const Tensor& leaf : leaves) leaf.zero_grad();
                     };
                   },
                   .bytes = 4 * 2 * numbers(x)});
}

GpuLine adamw_line(int64_t layers, int64_t width, const GpuSetup& setup) {
  double parameters = 0;
  for (const Shape& shape : vit_shapes(layers, width)) parameters += numbers(shape);
  return {.name = name_of("adamw/step", {layers, width}),
          .make = [=]() -> Call {
            Tensors made;
            for (const Shape& shape : vit_shapes(layers, width)) {
              made.push_back(gpu_random(shape, setup, DType::f32).require_grad());
              backward(made.back(), gpu_random(shape, setup, DType::f32));
            }
            const auto adam = std::make_shared<Adam>(std::vector<ParameterGroup>{{made, 0.01f}}, AdamOptions{});
            return [adam] { adam->step(1e-3f); };
          },
          .bytes = 7 * sizeof(float) * parameters};  // reads weights, gradients and two moments, writes all but the gradients
}

}  // namespace

Tensor gpu_random(const Shape& shape, const GpuSetup& setup, DType dtype) {
  static Rng rng(1);
  return converted(random_normal(shape, 0, 1, rng, setup.device), dtype);
}

Call gpu_forward_call(const Tensors& inputs, const Function& function) {
  return [=] {
    const NoGrad quiet;
    function(inputs);
  };
}

Call gpu_backward_call(Tensors inputs, const Function& function, const GpuSetup& setup) {
  for (Tensor& input : inputs) input.require_grad();
  const Tensor out = function(inputs), seed = out.count() == 1 ? Tensor() : gpu_random(out.shape(), setup, out.dtype());
  return [=] {
    backward(out, seed, true);
    for (const Tensor& input : inputs) input.zero_grad();
  };
}

GpuLines gpu_ceilings(const GpuSetup& setup) {
  return {product_line(setup.tiny ? 64 : 8192, setup), copy_line(setup.tiny ? 1000 : 1'000'000'000, setup)};
}

GpuLines gpu_op_lines(const GpuSetup& setup) {
  GpuLines lines;
  const auto rows = [&](int64_t many) { return setup.tiny ? 6 : many; };
  for (const auto& [in, out] : {std::pair(768, 768), std::pair(768, 3072), std::pair(3072, 768)})
    lines.push_back(linear_line(rows(128 * 197), in, out, setup));
  for (const auto& [in, out] : {std::pair(192, 192), std::pair(192, 768), std::pair(768, 192)})
    lines.push_back(linear_line(rows(1024 * 65), in, out, setup));
  for (const auto& [many, width] : {std::pair(512 * 197, 768), std::pair(4096 * 65, 192)})
    add_streams(
        lines, "layer_norm", {rows(many), width}, DType::bf16, {{width}, {width}},
        [](const Tensors& t) { return layer_norm(t[0], t[1], t[2]); }, false, setup);
  add_streams(
      lines, "gelu", {rows(128 * 197), 3072}, DType::bf16, {}, [](const Tensors& t) { return gelu(t[0]); }, false, setup);
  for (const int64_t width : {768, 3072}) lines.push_back(column_sum_line(rows(128 * 197), width, setup));
  add_gelu_layer(lines, rows(128 * 197), 768, 3072, setup);
  add_residual_norm(lines, {rows(512 * 197), 768}, setup);
  add_streams(
      lines, "softmax", {rows(256 * 12 * 197), 197}, DType::bf16, {}, [](const Tensors& t) { return softmax(t[0]); }, false, setup);
  const Shape logits{rows(64 * 128), setup.tiny ? 100 : 30522};
  const Tensor targets = random_targets(logits[0], logits[1]).to(setup.device);
  add_streams(
      lines, "cross_entropy", logits, DType::f32, {}, [targets](const Tensors& t) { return cross_entropy(t[0], targets); }, true, setup);
  lines.push_back(adamw_line(setup.tiny ? 1 : 12, setup.tiny ? 32 : 768, setup));
  return lines;
}

}  // namespace heed::bench
