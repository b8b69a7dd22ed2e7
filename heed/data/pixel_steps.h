// Steps of augmentation on the bytes of an image: the image operations of RandAugment (Cubuk et al. 2020). Colours are the same as with
// Pillow's ImageEnhance and ImageOps. A team does the work of a step: one thread of the CPU, or a block of threads of a GPU, so both
// compute the same bytes with the same code.
#pragma once

#include <cmath>

#include "heed/core/philox.h"
#include "heed/io/grey.h"

namespace heed {

// Comments give the meaning of `amount`.
enum class ImageOp : int32_t {
  rotate,        // degrees, counter-clockwise
  shear_x,       // shift of the bottom edge to the right relative to the top, as a fraction of the height
  shear_y,       // shift of the right edge down relative to the left, as a fraction of the width
  translate_x,   // to the right, fraction of the width
  translate_y,   // down, fraction of the height
  brightness,    // a factor; 0: black
  contrast,      // a factor; 0: uniform mean grey
  saturation,    // a factor; 0: grey
  sharpness,     // a factor; 0: smoothed
  posterize,     // bits kept, 1 to 8
  solarize,      // values >= amount are inverted
  equalize,      // no amount: equalizes each channel's histogram
  autocontrast,  // no amount: stretches each channel to 0..255
  invert,        // no amount
};
inline constexpr int kImageOps = 14;

// Inverse map of an output pixel: source = matrix * (position relative to the centre) + offset.
struct Warp {
  double xx = 1, xy = 0, yx = 0, yy = 1, x = 0, y = 0;
};

struct PixelStep {
  ImageOp op;
  float amount;
  Warp warp = {};  // of the first five ops
};

// A rectangle of random bytes: byte i is the top byte of number first + i of a sequence of random numbers (data/draws.h).
struct ErasedPart {
  int64_t left = 0, top = 0, width = 0, height = 0;
  uint64_t seed = 0, stream = 0, first_block = 0, first = 0;
};

// How one image is augmented. Its steps follow in memory.
struct ImagePlan {
  int64_t left = 0, top = 0;  // of the crop, whose size is that of the image; black outside of the image
  int64_t flip = 0;           // 1: the crop is mirrored
  ErasedPart erased = {};     // after all steps
};

// Memory that a team shares.
struct StepTables {
  uint32_t counts[3][256];  // pixels of a channel by byte
  uint8_t table[3][256];    // new bytes of a channel by byte
};

namespace pixel_steps {

HEED_HOST_DEVICE inline uint8_t truncated_byte(float x) { return static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x); }

// Linear interpolation: factor 0 is `from`, 1 is `to`. Truncated, not rounded.
HEED_HOST_DEVICE inline uint8_t blended(int from, int to, float factor) {
  return truncated_byte(static_cast<float>(from) + factor * static_cast<float>(to - from));
}

// Pixel (x, y) of a warped image: bilinear interpolation in 1/256 steps; pixels outside are grey.
HEED_HOST_DEVICE inline void warp_pixel(const Warp& warp, const uint8_t* from, int width, int height, int x, int y, uint8_t* to) {
  constexpr int grey = 128, one = 256;
  const double middle_x = static_cast<double>(width - 1) / 2, middle_y = static_cast<double>(height - 1) / 2;
  const double dx = static_cast<double>(x) - middle_x, dy = static_cast<double>(y) - middle_y;
  const auto at_x = static_cast<int64_t>(floor((warp.xx * dx + warp.xy * dy + warp.x + middle_x) * one + 0.5)),
             at_y = static_cast<int64_t>(floor((warp.yx * dx + warp.yy * dy + warp.y + middle_y) * one + 0.5));
  const int64_t left = at_x >> 8, top = at_y >> 8;
  const int x_weight = static_cast<int>(at_x & 255), y_weight = static_cast<int>(at_y & 255);
  int sums[3] = {one * one / 2, one * one / 2, one * one / 2};
  for (int corner = 0; corner < 4; ++corner) {
    const int64_t column = left + (corner & 1), row = top + (corner >> 1);
    const int weight = (corner >> 1 ? y_weight : one - y_weight) * (corner & 1 ? x_weight : one - x_weight);
    const bool inside = column >= 0 && column < width && row >= 0 && row < height;
    for (int colour = 0; colour < 3; ++colour) sums[colour] += weight * (inside ? from[3 * (row * width + column) + colour] : grey);
  }
  for (int colour = 0; colour < 3; ++colour) to[colour] = static_cast<uint8_t>(sums[colour] >> 16);
}

// Blends with the smoothed image: weight 5/13 for the pixel, 1/13 for each of its eight neighbours. The border is unchanged.
HEED_HOST_DEVICE inline void sharpen_pixel(float factor, const uint8_t* from, int width, int height, int x, int y, uint8_t* to) {
  const int64_t row = int64_t{3} * width;
  const bool inside = x > 0 && y > 0 && x + 1 < width && y + 1 < height;
  for (int colour = 0; colour < 3; ++colour) {
    const uint8_t* const at = from + y * row + 3 * x + colour;
    to[colour] = at[0];
    if (!inside) continue;
    int sum = 4 * at[0];
    for (int line = -1; line <= 1; ++line) sum += at[line * row - 3] + at[line * row] + at[line * row + 3];
    to[colour] = blended((2 * sum + 13) / 26, at[0], factor);  // the mean, rounded
  }
}

HEED_HOST_DEVICE inline void fill_equalized(const uint32_t* counts, uint8_t* table) {
  int64_t all = 0, last = 0;
  for (int i = 0; i < 256; ++i) {
    all += counts[i];
    if (counts[i] > 0) last = counts[i];
  }
  const int64_t step = (all - last) / 255;
  int64_t sum = step / 2;
  for (int i = 0; i < 256; ++i) {
    const int64_t share = step == 0 ? i : sum / step;
    table[i] = static_cast<uint8_t>(share < 255 ? share : 255);
    sum += counts[i];
  }
}

HEED_HOST_DEVICE inline void fill_stretched(const uint32_t* counts, uint8_t* table) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  const double scale = high <= low ? 1 : 255.0 / (high - low), offset = high <= low ? 0 : -low * scale;
  for (int i = 0; i < 256; ++i) {
    const double x = i * scale + offset;
    table[i] = static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x);
  }
}

// The mean grey, rounded. counts: pixels by grey
HEED_HOST_DEVICE inline int mean_grey(const uint32_t* counts) {
  int64_t sum = 0, pixels = 0;
  for (int i = 0; i < 256; ++i) {
    sum += int64_t{counts[i]} * i;
    pixels += counts[i];
  }
  return static_cast<int>((2 * sum + pixels) / (2 * pixels));
}

HEED_HOST_DEVICE inline bool counts_pixels(ImageOp op) {
  return op == ImageOp::contrast || op == ImageOp::equalize || op == ImageOp::autocontrast;
}

// The result of an op that depends on one byte only.
HEED_HOST_DEVICE inline uint8_t new_byte(const PixelStep& step, int byte) {
  switch (step.op) {
    case ImageOp::brightness: return blended(0, byte, step.amount);
    case ImageOp::posterize: return static_cast<uint8_t>(byte & (0xff << (8 - static_cast<int>(step.amount))));
    case ImageOp::solarize: return static_cast<uint8_t>(static_cast<float>(byte) < step.amount ? byte : 255 - byte);
    default: return static_cast<uint8_t>(255 - byte);  // invert
  }
}

template <class Team>
HEED_HOST_DEVICE void fill_tables(const Team& team, const PixelStep& step, const uint8_t* from, int pixels, StepTables& shared) {
  if (!counts_pixels(step.op)) {
    team.each(256, [&](int i) {
      for (int colour = 0; colour < 3; ++colour) shared.table[colour][i] = new_byte(step, i);
    });
    return;
  }
  team.each(3 * 256, [&](int i) { shared.counts[i / 256][i % 256] = 0; });
  if (step.op == ImageOp::contrast) {
    team.each(pixels, [&](int i) { Team::increment(shared.counts[0][grey_of(from + 3 * i)]); });
    team.each(1, [&](int) { shared.counts[1][0] = static_cast<uint32_t>(mean_grey(shared.counts[0])); });
    team.each(256, [&](int i) {
      const uint8_t byte = blended(static_cast<int>(shared.counts[1][0]), i, step.amount);
      for (int colour = 0; colour < 3; ++colour) shared.table[colour][i] = byte;
    });
    return;
  }
  team.each(3 * pixels, [&](int i) { Team::increment(shared.counts[i % 3][from[i]]); });
  team.each(3, [&](int colour) {
    if (step.op == ImageOp::equalize)
      fill_equalized(shared.counts[colour], shared.table[colour]);
    else
      fill_stretched(shared.counts[colour], shared.table[colour]);
  });
}

}  // namespace pixel_steps

// One step. from, to: (height, width, 3), must not overlap. team.each(n, f) runs f(0) ... f(n - 1) in any order, then waits for all.
template <class Team>
HEED_HOST_DEVICE void run_step(const Team& team, const PixelStep& step, const uint8_t* from, uint8_t* to, int width, int height,
                               StepTables& shared) {
  using namespace pixel_steps;
  const int pixels = width * height;
  if (step.op <= ImageOp::translate_y)
    return team.each(pixels, [&](int i) { warp_pixel(step.warp, from, width, height, i % width, i / width, to + 3 * i); });
  if (step.op == ImageOp::sharpness)
    return team.each(pixels, [&](int i) { sharpen_pixel(step.amount, from, width, height, i % width, i / width, to + 3 * i); });
  if (step.op == ImageOp::saturation)
    return team.each(pixels, [&](int i) {
      const int grey = grey_of(from + 3 * i);
      for (int colour = 0; colour < 3; ++colour) to[3 * i + colour] = blended(grey, from[3 * i + colour], step.amount);
    });
  fill_tables(team, step, from, pixels, shared);
  team.each(3 * pixels, [&](int i) { to[i] = shared.table[i % 3][from[i]]; });
}

// The crop of a plan, mirrored if it says so. to: (height, width, 3)
template <class Team>
HEED_HOST_DEVICE void run_crop(const Team& team, const ImagePlan& plan, const uint8_t* from, uint8_t* to, int width, int height) {
  team.each(width * height, [&](int i) {
    const int x = i % width;
    const int64_t column = plan.left + (plan.flip ? width - 1 - x : x), row = plan.top + i / width;
    const bool inside = column >= 0 && column < width && row >= 0 && row < height;
    for (int colour = 0; colour < 3; ++colour) to[3 * i + colour] = inside ? from[3 * (row * width + column) + colour] : uint8_t{0};
  });
}

// image: (height, width, 3)
template <class Team>
HEED_HOST_DEVICE void run_erase(const Team& team, const ErasedPart& part, uint8_t* image, int width) {
  const int row = static_cast<int>(3 * part.width);
  team.each(static_cast<int>(row * part.height), [&](int i) {
    const uint64_t number = part.first + static_cast<uint64_t>(i);
    const uint32_t word = philox({part.seed, part.stream}, part.first_block + number / 4)[number % 4];
    image[3 * ((part.top + i / row) * width + part.left) + i % row] = static_cast<uint8_t>(word >> 24);
  });
}

// The team of one thread.
struct OneThread {
  template <class Each>
  void each(int count, const Each& run) const {
    for (int i = 0; i < count; ++i) run(i);
  }
  static void increment(uint32_t& count) { ++count; }
};

}  // namespace heed
