// Convolutions to convert: random, trained, and read from files.
#include <algorithm>
#include <cmath>

#include "heed/core/nearest.h"
#include "heed/data/shapes.h"
#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/images.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer.h"
#include "heed/train/settings_value.h"

namespace heed::lab {
namespace {

constexpr int64_t kShapesSide = 16, kShapesBatch = 64, kShapes = 512, kFilters = 8, kPooledSide = 4;

bool is_kernel(const Shape& shape) { return shape.rank() == 4; }

// Resolves `name` to a tensor of the file.
std::string weight_name(const Safetensors& file, const Path& path, const std::string& name) {
  if (file.contains(name)) return name;
  if (file.contains(name + ".weight")) return name + ".weight";
  std::vector<std::string> kernels;
  for (const std::string& each : file.names())
    if (is_kernel(file.entry(each).shape)) kernels.push_back(each);
  check<FileError>(!kernels.empty(), path.string(), ": contains no convolution, expected a tensor of shape (O, C, KY, KX)");
  if (name.empty() && kernels.size() == 1) return kernels[0];
  const std::string hint = did_you_mean(name, kernels);
  const size_t shown = std::min<size_t>(kernels.size(), 12);
  std::string known = listed({kernels.begin(), kernels.begin() + static_cast<int64_t>(shown)});
  if (shown < kernels.size()) known += " and " + std::to_string(kernels.size() - shown) + " more";
  fail<UsageError>(
      name.empty() ? "weights: several convolutions, choose one with name=..." : "name=" + quoted(name) + " is not in the file" + hint,
      "; ", path.string(), " has ", known);
}

Tensor read_f32(const Safetensors& file, const std::string& name) {
  const Tensor read = file.tensor(name), out = Tensor::empty(read.shape(), kCpu);
  copy_into(read, out);
  return out;
}

}  // namespace

Convolution random_convolution(int64_t channels, int64_t outputs, int64_t kernel, Rng& rng) {
  const float deviation = 1 / std::sqrt(static_cast<float>(channels * kernel * kernel));
  const Tensor weight = random_normal({outputs, channels, kernel, kernel}, 0, deviation, rng, kCpu);
  return {.weight = weight, .bias = random_normal({outputs}, 0, 0.1f, rng, kCpu)};
}

TrainedConvolution trained_convolution(int64_t kernel, int64_t steps, uint64_t seed) {
  const ImageData data = synthetic_shapes({.count = kShapes, .side = kShapesSide, .seed = seed});
  Rng rng(seed);
  const int64_t half = kernel / 2, cells = kPooledSide * kPooledSide, classes = std::ssize(data.classes), pool = kShapesSide / kPooledSide;
  const auto random_parameter = [&](const Shape& shape, int64_t inputs) {
    Tensor out = random_normal(shape, 0, 1 / std::sqrt(static_cast<float>(inputs)), rng, kCpu);
    return out.require_grad();
  };
  const auto zeros = [](int64_t count) { return Tensor::zeros({count}, kCpu).require_grad(); };
  const Tensor taps = random_parameter({kFilters, 3, kernel, kernel}, 3 * kernel * kernel), bias = zeros(kFilters),
               head = random_parameter({classes, kFilters * cells}, kFilters * cells), head_bias = zeros(classes);
  Adam adam({{{taps, bias, head, head_bias}, 0}}, {});
  TrainedConvolution out;
  for (int64_t step = 0; step < steps; ++step) {
    Tensors pixels;
    std::vector<int64_t> labels;
    for (int64_t b = 0; b < kShapesBatch; ++b) {
      const int64_t i = (step * kShapesBatch + b) % kShapes;
      pixels.push_back(image_tensor(data.image(i)));
      labels.push_back(data.labels[static_cast<size_t>(i)]);
    }
    const Tensor activations = relu(conv2d(concat(pixels, 0), taps, bias, {.padding = {half, half}}));
    const Tensor pooled = max_pool2d(activations, {.kernel = {pool, pool}, .stride = {pool, pool}});
    const Tensor loss = cross_entropy(linear(reshape(pooled, {kShapesBatch, kFilters * cells}), head, head_bias),
                                      Tensor::from(labels, {kShapesBatch}, kCpu));
    adam.zero_grad();
    backward(loss);
    adam.step(3e-3f);
    out.last_loss = loss.item();
    if (step == 0) out.first_loss = out.last_loss;
  }
  out.convolution = {.weight = taps.detach(), .bias = bias.detach()};
  return out;
}

Convolution convolution_in(const Path& path, const std::string& name, const std::string& bias) {
  const Safetensors file = Safetensors::open(path);
  const std::string weight = weight_name(file, path, name);
  const Shape shape = file.entry(weight).shape;
  check<UsageError>(is_kernel(shape) && count(shape) > 0, "name=", quoted(weight), " has shape ", shape, ", expected (O, C, KY, KX)");
  Convolution out{.weight = read_f32(file, weight)};
  std::string bias_name = bias;
  if (bias.empty() && weight.ends_with("weight")) bias_name = weight.substr(0, weight.size() - 6) + "bias";
  if (bias.empty() && !file.contains(bias_name)) return out;
  check<UsageError>(file.contains(bias_name), "bias=", quoted(bias), " is not in ", path.string(), did_you_mean(bias, file.names()));
  check<UsageError>(file.entry(bias_name).shape == Shape{out.outputs()}, "bias=", quoted(bias_name), " has shape ",
                    file.entry(bias_name).shape, ", expected (", out.outputs(), ")");
  out.bias = read_f32(file, bias_name);
  return out;
}

Tensor image_tensor(const Image& image) {
  return reshape(colours_of(image), {1, 3, image.height, image.width}) * 2.0f - Tensor::ones({1}, kCpu);
}

}  // namespace heed::lab
