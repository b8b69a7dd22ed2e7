// Pictures changed by chance while a model learns from them. What happens to a picture is a function of its random key alone.
#pragma once

#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "heed/io/picture.h"

namespace heed {

struct AugmentOptions {
  int64_t pad = 0;               // a crop of the old size from the picture with so many pixels of black around it
  bool flip = false;             // left and right, every second time
  float resized_crop = 1;        // a part of at least this share of the area, 3:4 to 4:3 in shape, made as large as the picture; 1: none
  float colour = 0;              // brightness, contrast and saturation each by a factor of 1 - c to 1 + c
  int64_t random_ops = 0;        // so many operations of RandAugment's list (Cubuk et al. 2020)
  float random_strength = 0.5f;  // of them, 0 to 1
  float erase = 0;               // the probability that a rectangle is filled with noise (Zhong et al. 2020)
};
Picture augmented(const Picture& picture, const AugmentOptions& options, RandomKey key);

struct Mixing {
  float mixup = 0,
        cutmix = 0;  // alphas of the Beta distributions (Zhang et al. 2018, Yun et al. 2019); 0: not; with both, each every second time
};
struct Mixed {
  Tensor pixels;                    // (B, C, Y, X)
  std::vector<int64_t> other = {};  // the picture of the batch that is mixed into each; empty: nothing was mixed
  float share = 1;                  // of the first one: the loss is share loss(label) + (1 - share) loss(label of the other)
};
Mixed mixed(const Tensor& pixels, const Mixing& mixing, RandomKey key);  // pixels: (B, C, Y, X) f32

}  // namespace heed
