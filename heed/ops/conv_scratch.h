// How the CUDA convolution splits the sum over images and positions in the weight gradient, depending on the shape alone.
#pragma once

#include "heed/ops/conv.h"
#include "heed/ops/tile_plan.h"

namespace heed {

struct ConvWeightScratch {
  TilePlan plan;   // a group's outputs by its inputs' taps; parts: (parts, weights)
  int64_t slices;  // of images, for the gradient of the bias: (slices, out)

  int64_t weight_floats(const ConvSizes& s) const { return plan.parts > 1 ? plan.parts * s.weights() : 0; }
  int64_t bytes(const ConvSizes& s) const { return (weight_floats(s) + (slices > 1 ? slices * s.out : 0)) * 4; }
};

inline ConvWeightScratch conv_weight_scratch(const ConvSizes& s) {
  const int64_t most = std::clamp<int64_t>((int64_t{1} << 24) / std::max<int64_t>(1, s.weights()), 1, 64);  // 64 MiB
  const int64_t slices = std::clamp<int64_t>(512 / std::max<int64_t>(1, s.out), 1, std::max<int64_t>(1, s.B));
  return {plan_tiles(s.groups, s.out / s.groups, s.in / s.groups * s.window.taps(), s.B * s.window.out_pixels(), most), slices};
}

}  // namespace heed
