// The image operations of RandAugment (Cubuk et al. 2020). Colours are the same as with Pillow's ImageEnhance and ImageOps.
#pragma once

#include "heed/io/image.h"

namespace heed {

// Comments give the meaning of `amount`.
enum class ImageOp {
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

Image apply_op(const Image& image, ImageOp op, float amount = 0);  // geometric ops are about the centre, uncovered areas are grey

void flip_horizontal(Image& image);
// A rectangle of an image, black outside it.
Image cropped(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height);

}  // namespace heed
