#include "heed/nn/patches.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

// -> (B, Y/P, X/Q, C, P, Q), or (B, Y/P, X/Q, P, Q, C)
Tensor split_patches(const Tensor& x, int64_t P, int64_t Q, bool channels_last) {
  check(x.rank() == 4, "patches: the image has shape ", x.shape(), ", expected (B, C, Y, X)");
  check(P >= 1 && Q >= 1 && x.size(2) % P == 0 && x.size(3) % Q == 0, "patches: an image of ", x.size(2), " x ", x.size(3),
        " does not divide into patches of ", P, " x ", Q);
  const Tensor cells = reshape(x, {x.size(0), x.size(1), x.size(2) / P, P, x.size(3) / Q, Q});
  return channels_last ? permute(cells, {0, 2, 4, 3, 5, 1}) : permute(cells, {0, 2, 4, 1, 3, 5});
}

// Keys (1981), equation 4.
double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The weights of a line's cells in each cell of another line. -> (to, from)
Tensor line_weights(int64_t from, int64_t to, GridFilter filter, Device device) {
  const bool cut = filter == GridFilter::antialiased;
  const double scale = static_cast<double>(from) / static_cast<double>(to), width = cut ? std::max(scale, 1.0) : 1;
  std::vector<float> out;
  std::vector<double> row(static_cast<size_t>(from));
  for (int64_t t = 0; t < to; ++t) {
    std::fill(row.begin(), row.end(), 0);
    const double centre = (static_cast<double>(t) + 0.5) * scale - 0.5;
    double sum = 0;
    for (auto cell = static_cast<int64_t>(std::floor(centre - 2 * width)); cell <= static_cast<int64_t>(centre + 2 * width) + 1; ++cell) {
      if (cut && (cell < 0 || cell >= from)) continue;
      const double weight = cubic_weight((static_cast<double>(cell) - centre) / width, cut ? -0.5 : -0.75);
      row[static_cast<size_t>(std::clamp<int64_t>(cell, 0, from - 1))] += weight;
      sum += weight;
    }
    for (const double weight : row) out.push_back(static_cast<float>(weight / sum));
  }
  return Tensor::from(out, {to, from}, device);
}

}  // namespace

Tensor unfold_patches(const Tensor& x, int64_t P, int64_t Q) {
  const Tensor patches = split_patches(x, P, Q, false);
  return reshape(patches, {patches.size(0), patches.size(1) * patches.size(2), x.size(1) * P * Q});
}

Tensor space_to_depth(const Tensor& x, int64_t P) {
  const Tensor patches = split_patches(x, P, P, true);
  return reshape(patches, {patches.size(0), patches.size(1) * patches.size(2), P * P * x.size(1)});
}

Tensor interpolated_grid(const Tensor& x, const TokenGrid& from, const TokenGrid& to, GridFilter filter) {
  check(std::min({from[0], from[1], to[0], to[1]}) >= 1 && x.rank() == 2 && x.size(0) == from[0] * from[1], "interpolation: x has shape ",
        x.shape(), ", expected (", from[0] * from[1], ", D), for ", from[0], " x ", from[1], " cells");
  const int64_t D = x.size(1);
  const Tensor rows = matmul(line_weights(from[0], to[0], filter, x.device()), reshape(x, {from[0], from[1] * D}));
  const Tensor cells = matmul(line_weights(from[1], to[1], filter, x.device()), reshape(rows, {to[0], from[1], D}));
  return reshape(cells, {to[0] * to[1], D});
}

PatchEmbedding::PatchEmbedding(const Scope& scope, int64_t channels, int64_t P, int64_t Q, int64_t D, bool with_bias)
    : weight(scope.get("weight", {D, channels, P, Q}, scope.initializer().patch)), kernel(weight.shape()), name(module_name(scope.path())) {
  if (with_bias) bias = scope.get("bias", {D}, initializer::zeros(), {.decays = false});
  if (scope.params().weights() == Weights::trainable) return;
  packed = std::make_shared<const PackedWeight>(Tensors{reshape(weight, {D, -1})}, WeightForm::panels);
  weight = Tensor();
  scope.release("weight");
}

Tensor PatchEmbedding::operator()(const Tensor& x, DType precision) const {
  check(x.rank() == 4 && x.size(1) == kernel[1], "patches: the image has shape ", x.shape(), ", expected (B, ", kernel[1], ", Y, X)");
  const ModuleScope module(name);
  const auto in = [&](const Tensor& each, DType dtype) { return each.dtype() == dtype || x.device() == kCpu ? each : cast(each, dtype); };
  const Tensor patches = unfold_patches(in(x, precision), kernel[2], kernel[3]);
  const Tensor y = packed ? (*packed)(patches, bias) : linear(patches, reshape(weight, {kernel[0], -1}), bias);
  return module.call({&x, &weight}, in(y, x.dtype()));
}

}  // namespace heed
