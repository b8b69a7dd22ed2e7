// conv2d: checks, gradients, and the case that is a linear layer. conv_cpu.cc computes.
#include "heed/ops/conv.h"

#include "heed/core/raw.h"
#include "heed/ops/conv_scratch.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

ConvSizes sizes_of(const Tensor& x, const Tensor& w, const Tensor& b, const Conv2d& options) {
  check(x.rank() == 4, "conv2d: x has shape ", x.shape(), ", expected (B, C, Y, X)");
  check(w.rank() == 4, "conv2d: the weight has shape ", w.shape(), ", expected (O, C / groups, KY, KX)");
  const int64_t in = x.size(1), out = w.size(0), groups = options.groups;
  check(in >= 1 && out >= 1, "conv2d: ", in, " input and ", out, " output channels, expected 1 or more");
  check(groups >= 1, "conv2d: ", groups, " groups, expected 1 or more");
  check(in % groups == 0, "conv2d: ", groups, " groups do not divide ", in, " input channels");
  check(out % groups == 0, "conv2d: ", groups, " groups do not divide ", out, " output channels");
  check(w.size(1) == in / groups, "conv2d: the weight takes ", w.size(1), " channels, x has ", in, " in ", groups, " groups");
  check(!b.defined() || b.shape() == Shape{out}, "conv2d: the bias has shape ", b.shape(), ", the weight ", out, " output channels");
  const Pair image{x.size(2), x.size(3)}, kernel{w.size(2), w.size(3)};
  return {.B = x.size(0),
          .in = in,
          .out = out,
          .groups = groups,
          .window = checked_window("conv2d", image, kernel, options.stride, options.padding, options.dilation)};
}

// Whether the windows tile the image, as the patches of a vision transformer do.
bool tiles_the_image(const ConvSizes& sizes) {
  const Window2d& o = sizes.window;
  for (int axis = 0; axis < 2; ++axis)
    if (o.padding[axis] != 0 || o.dilation[axis] != 1 || o.stride[axis] != o.kernel[axis] || o.image[axis] % o.kernel[axis] != 0)
      return false;
  return sizes.groups == 1 && o.taps() > 1;
}

// Then the convolution is a linear layer on flattened patches, and twice as fast so.
Tensor linear_on_patches(const Tensor& x, const Tensor& w, const Tensor& b, const ConvSizes& s) {
  const Window2d& o = s.window;
  const int64_t width = s.in * o.taps();
  const Tensor cut = reshape(x, {s.B, s.in, o.places[0], o.kernel[0], o.places[1], o.kernel[1]});
  const Tensor patches = reshape(permute(cut, {0, 2, 4, 1, 3, 5}), {s.B * o.out_pixels(), width});
  const Tensor y = linear(patches, reshape(w, {s.out, width}), b);
  return permute(reshape(y, {s.B, o.places[0], o.places[1], s.out}), {0, 3, 1, 2});
}

// g: (B, O, OY, OX), w: (O, C / groups, KY, KX) -> dx: (B, C, Y, X)
Tensor conv_input_gradient(const ConvSizes& sizes, const Tensor& g, const Tensor& w) {
  const Tensor dx = Tensor::empty({sizes.B, sizes.in, sizes.window.image[0], sizes.window.image[1]}, DType::f32, g.device());
  launch(conv_backward_input, g.device(), {.g = raw<float>(g), .w = raw<float>(w), .dx = raw<float>(dx), .sizes = sizes});
  return dx;
}

// x: (B, C, Y, X), g: (B, O, OY, OX) -> dw: (O, C / groups, KY, KX), db: (O)
std::pair<Tensor, Tensor> conv_weight_gradient(const ConvSizes& sizes, const Tensor& x, const Tensor& g) {
  const Shape shape{sizes.out, sizes.in / sizes.groups, sizes.window.kernel[0], sizes.window.kernel[1]};
  const Tensor dw = Tensor::empty(shape, DType::f32, x.device()), db = Tensor::empty({sizes.out}, DType::f32, x.device());
  launch(conv_backward_weight, x.device(),
         {.x = raw<float>(x), .g = raw<float>(g), .dw = raw<float>(dw), .db = raw<float>(db), .sizes = sizes});
  return {dw, db};
}

}  // namespace

int64_t ConvBackwardWeight::workspace_bytes(Device device) const {
  return device.kind == Device::Kind::cpu ? 0 : conv_weight_scratch(sizes).bytes(sizes);
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2d& options) {
  if (is_half(input) || is_half(weight) || is_half(bias))
    return in_f32(input, [&](const Tensor& wide) { return conv2d(wide, widen(weight), widen(bias), options); });
  const Tensor x = dense_f32("conv2d", input), w = dense_f32("conv2d", weight);
  const Tensor b = bias.defined() ? dense_f32("conv2d", bias) : Tensor();
  const ConvSizes sizes = sizes_of(x, w, b, options);
  if (tiles_the_image(sizes)) return linear_on_patches(input, weight, bias, sizes);
  const Device device = common_device("conv2d", {&x, &w, &b});
  const Tensor y = Tensor::empty({sizes.B, sizes.out, sizes.window.places[0], sizes.window.places[1]}, DType::f32, device);
  launch(conv_forward, device, {.x = raw<float>(x), .w = raw<float>(w), .b = raw_or_null<float>(b), .y = raw<float>(y), .sizes = sizes});

  const bool to_x = input.needs_grad(), to_w = weight.needs_grad() || bias.needs_grad();
  const auto back = [sizes, to_x, to_w, x = to_w ? x : Tensor(), w = to_x ? w : Tensor()](const Tensor& gradient) {
    const Tensor g = contiguous(gradient);
    Grads grads(3);
    if (to_x) grads[0] = conv_input_gradient(sizes, g, w);
    if (to_w) std::tie(grads[1], grads[2]) = conv_weight_gradient(sizes, x, g);
    return grads;
  };
  return record(op::conv2d, y, {input, weight, bias}, back);
}

}  // namespace heed
