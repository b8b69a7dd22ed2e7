// What RandAugment does to pictures (Cubuk et al. 2020), one operation at a time. Colours come out as Pillow's ImageEnhance and
// ImageOps give them.
#pragma once

#include "heed/io/picture.h"

namespace heed {

// The amount of each is in its comment.
enum class PictureOp {
  rotate,        // degrees, against the clock
  shear_x,       // of the height: how far right the lower edge goes beside the upper one
  shear_y,       // of the width: how far down the right edge goes beside the left one
  translate_x,   // of the width, to the right
  translate_y,   // of the height, down
  brightness,    // a factor; 0: black
  contrast,      // a factor; 0: all of the mean grey
  saturation,    // a factor; 0: grey
  sharpness,     // a factor; 0: smoothed
  posterize,     // how many bits stay, 1 to 8
  solarize,      // bytes from this on are inverted
  equalize,      // no amount: the histogram of each colour made even
  autocontrast,  // no amount: each colour from 0 to 255
  invert,        // no amount
};
inline constexpr int kPictureOps = 14;

Picture changed(const Picture& picture, PictureOp op, float amount = 0);  // moved ones: grey where nothing was, the middle stays

void flip_sideways(Picture& picture);
// A part of a picture, black where it reaches beyond it.
Picture cropped(const Picture& picture, int64_t left, int64_t top, int64_t width, int64_t height);

}  // namespace heed
