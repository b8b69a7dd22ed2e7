// The random choices of augmentation. They are made on the host, so that the CPU and GPUs augment an image in the same way.
#pragma once

#include <vector>

#include "heed/core/api.h"
#include "heed/data/augment.h"
#include "heed/data/pixel_steps.h"

namespace HEED_API heed {

// A rectangle of an image. Width 0: none.
struct Box {
  int64_t left = 0, top = 0, width = 0, height = 0;
};

// The augmentation of one image after the resized crop.
struct DrawnPlan {
  ImagePlan image = {};
  std::vector<PixelStep> steps = {};
};

void check_options(const AugmentOptions& options);
Box draw_resized_crop(const AugmentOptions& options, ImageSize size, RandomKey key);  // width 0: the whole image
DrawnPlan draw_plan(const AugmentOptions& options, ImageSize size, RandomKey key);    // the same number of steps for every image

// How the images of a batch are mixed.
struct MixPlan {
  std::vector<int64_t> other = {};                   // index of the image mixed into each; empty: no mixing
  float share = 1;                                   // weight of the own label
  bool cut = false;                                  // cutmix: a rectangle is replaced. mixup: share * own + (1 - share) * other
  int64_t top = 0, bottom = 0, left = 0, right = 0;  // the rectangle; bottom and right are exclusive
};
MixPlan draw_mix(const MixOptions& mixing, int64_t B, int64_t height, int64_t width, RandomKey key);

}  // namespace heed
