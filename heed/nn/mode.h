// Training or evaluation mode. In training it carries the random generator of dropout and stochastic depth.
#pragma once

#include "heed/core/api.h"
#include "heed/ops/ops.h"

namespace HEED_API heed {

// Training or evaluation.
struct Mode {
  Rng* rng = nullptr;  // null: evaluation

  bool training() const { return rng != nullptr; }  // whether random numbers are drawn
};

inline Mode training_with(Rng& rng) { return {&rng}; }  // draws from rng

// The op in training, x itself in evaluation.
inline Tensor dropout(const Tensor& x, float p, Mode mode) { return mode.training() ? dropout(x, p, *mode.rng) : x; }

// Stochastic depth (Huang et al. 2016): in training, each item of a residual branch is dropped with probability p and the
// others are scaled by 1 / (1 - p), so evaluation needs no factor. branch: (B, ...)
inline Tensor stochastic_depth(const Tensor& branch, float p, Mode mode) {
  if (!mode.training() || p == 0) return branch;
  Shape items;
  for (int axis = 0; axis < branch.rank(); ++axis) items.push_back(axis == 0 ? branch.size(0) : 1);
  return branch * dropout(Tensor::ones(items, branch.dtype(), branch.device()), p, *mode.rng);
}

// Linear schedule of the paper: p_last (layer + 1) / layers. layer: 0 ... layers - 1
inline float stochastic_depth_of(int64_t layer, int64_t layers, float p_last) {
  check(0 <= layer && layer < layers, "stochastic_depth: layer ", layer, " of ", layers);
  return p_last * static_cast<float>(layer + 1) / static_cast<float>(layers);
}

}  // namespace heed
