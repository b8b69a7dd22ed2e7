// Operations on whole images, for augmentation.
#pragma once

#include "heed/data/pixel_steps.h"
#include "heed/io/image.h"

namespace heed {

// An op with its amount, for images of this size. Geometric ops are about the centre, uncovered areas are grey.
PixelStep pixel_step(ImageOp op, float amount, int64_t width, int64_t height);

Image apply_step(const Image& image, const PixelStep& step);  // for images of the step's size

void flip_horizontal(Image& image);
// A rectangle of an image, black outside it.
Image cropped(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height);

}  // namespace heed
