#include "heed/nn/patches.h"

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

}  // namespace

Tensor unfold_patches(const Tensor& x, int64_t P, int64_t Q) {
  const Tensor patches = split_patches(x, P, Q, false);
  return reshape(patches, {patches.size(0), patches.size(1) * patches.size(2), x.size(1) * P * Q});
}

Tensor space_to_depth(const Tensor& x, int64_t P) {
  const Tensor patches = split_patches(x, P, P, true);
  return reshape(patches, {patches.size(0), patches.size(1) * patches.size(2), P * P * x.size(1)});
}

PatchEmbedding::PatchEmbedding(const Scope& scope, int64_t channels, int64_t P, int64_t Q, int64_t D, bool with_bias)
    : weight(scope.get("weight", {D, channels, P, Q}, scope.initializer().patch)), name(module_name(scope.path())) {
  if (with_bias) bias = scope.get("bias", {D}, initializer::zeros(), {.decays = false});
}

Tensor PatchEmbedding::operator()(const Tensor& x) const {
  check(x.rank() == 4 && x.size(1) == weight.size(1), "patches: the image has shape ", x.shape(), ", expected (B, ", weight.size(1),
        ", Y, X)");
  const ModuleScope module(name);
  return module.call({&x, &weight}, linear(unfold_patches(x, weight.size(2), weight.size(3)), reshape(weight, {weight.size(0), -1}), bias));
}

}  // namespace heed
