// Random image augmentation for training. The result depends only on the image and its random key.
#pragma once

#include "heed/core/api.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "heed/io/image.h"

namespace HEED_API heed {

// Which augmentations, and how strong.
struct AugmentOptions {
  int64_t pad = 0;               // random crop of the original size after padding with this many black pixels
  bool flip = false;             // horizontal flip with probability 1/2
  float resized_crop = 1;        // minimum area fraction of a random crop (aspect 3:4 to 4:3), resized to the image; 1: off
  float colour = 0;              // brightness, contrast, saturation: factors in [1 - colour, 1 + colour]
  int64_t random_ops = 0;        // number of RandAugment operations (Cubuk et al. 2020)
  float random_strength = 0.5f;  // their magnitude, 0 to 1
  float erase = 0;               // probability of random erasing (Zhong et al. 2020)
};
// A new image of the same size.
Image augmented(const Image& image, const AugmentOptions& options, RandomKey key);

// Mixing of two images of a batch.
struct MixOptions {
  // Alphas of the Beta distributions (Zhang et al. 2018, Yun et al. 2019); 0: off. With both, each is used half of the time.
  float mixup = 0, cutmix = 0;
};
struct MixedBatch {
  Tensor pixels;                    // (B, C, Y, X)
  std::vector<int64_t> other = {};  // index of the image mixed into each; empty: no mixing
  float share = 1;                  // weight of the own label: loss = share * loss(label) + (1 - share) * loss(other label)
};
MixedBatch mixed(const Tensor& pixels, const MixOptions& mixing, RandomKey key);  // pixels: (B, C, Y, X) f32

}  // namespace heed
