// Augmentation of images that are stored on a device: the same pixels as augmented() and mixed() make on the host.
#pragma once

#include <span>

#include "heed/core/api.h"
#include "heed/core/kernel.h"
#include "heed/core/tensor.h"
#include "heed/data/augment_plan.h"

namespace HEED_API heed {

// Plans of a batch for augmented_pixels: (B, words) i64 on the host.
Tensor plans_tensor(std::span<const DrawnPlan> plans);

// Selects images, augments them by their plans, and normalizes them. images: (count, Y, X, 3) u8, which: (B) i64, indices of images, plans:
// (B, words), or undefined: no augmentation, values: (C, 256) f32, the normalized value of every byte of a channel, or of grey if C = 1
// -> (B, C, Y, X) f32
Tensor augmented_pixels(const Tensor& images, const Tensor& which, const Tensor& plans, const Tensor& values);

// pixels: (B, C, Y, X) f32, other: (B) i64, plan.other on the device of the pixels -> (B, C, Y, X)
Tensor mixed_pixels(const Tensor& pixels, const Tensor& other, const MixPlan& plan);

struct AugmentImages {
  const uint8_t* images;
  const int64_t *which, *plans;  // plans: null if there are none
  const float* values;
  float* out;
  int64_t B, C, Y, X, steps;
  void* workspace = nullptr;  // two images for each of the batch

  HEED_HOST_DEVICE int64_t image_bytes() const { return 3 * Y * X; }
  static int64_t words(int64_t steps) {
    return static_cast<int64_t>(sizeof(ImagePlan) + static_cast<size_t>(steps) * sizeof(PixelStep)) / 8;
  }
  int64_t workspace_bytes(Device) const { return plans ? 2 * B * image_bytes() : 0; }
};
HEED_KERNEL(augment_images, AugmentImages);

struct MixImages {
  const float* x;
  const int64_t* other;
  float* out;
  int64_t B, C, Y, X;
  float share;
  bool cut;
  int64_t top, bottom, left, right;

  HEED_HOST_DEVICE int64_t count() const { return B * C * Y * X; }
};
HEED_KERNEL(mix_images, MixImages);

// Image b of the batch.
template <class Team>
HEED_HOST_DEVICE void augment_image(const Team& team, const AugmentImages& p, int64_t b, StepTables& shared) {
  const int width = static_cast<int>(p.X), height = static_cast<int>(p.Y), pixels = width * height;
  const uint8_t* from = p.images + p.which[b] * p.image_bytes();
  if (p.plans) {
    const auto* const plan =
        reinterpret_cast<const ImagePlan*>(reinterpret_cast<const char*>(p.plans) + b * (sizeof(ImagePlan) + p.steps * sizeof(PixelStep)));
    const auto* const steps = reinterpret_cast<const PixelStep*>(plan + 1);
    uint8_t* now = static_cast<uint8_t*>(p.workspace) + 2 * b * p.image_bytes();
    uint8_t* next = now + p.image_bytes();
    run_crop(team, *plan, from, now, width, height);
    for (int64_t s = 0; s < p.steps; ++s) {
      run_step(team, steps[s], now, next, width, height, shared);
      uint8_t* const done = next;
      next = now;
      now = done;
    }
    run_erase(team, plan->erased, now, width);
    from = now;
  }
  float* const out = p.out + b * p.C * pixels;
  team.each(static_cast<int>(p.C) * pixels, [&](int i) {
    const int channel = i / pixels, pixel = i % pixels;
    out[i] = p.values[256 * channel + (p.C == 1 ? grey_of(from + 3 * pixel) : from[3 * pixel + channel])];
  });
}

HEED_HOST_DEVICE inline float mixed_value(const MixImages& p, int64_t i) {
  const int64_t image = p.C * p.Y * p.X, y = i / p.X % p.Y, x = i % p.X;
  const float own = p.x[i], other = p.x[p.other[i / image] * image + i % image];
  if (p.cut) return y >= p.top && y < p.bottom && x >= p.left && x < p.right ? other : own;
  return p.share * own + (1 - p.share) * other;
}

}  // namespace heed
