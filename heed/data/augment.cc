#include "heed/data/augment.h"

#include "heed/data/augment_images.h"
#include "heed/data/augment_plan.h"
#include "heed/data/image_ops.h"
#include "heed/io/resize.h"

namespace heed {

Image augmented(const Image& image, const AugmentOptions& options, RandomKey key) {
  check(image.width > 0 && image.height > 0 && std::ssize(image.pixels) == image.width * image.height * 3, "augmented: found ",
        image.pixels.size(), " bytes, expected 3 for each of ", image.width, " x ", image.height, " pixels");
  check_options(options);
  const ImageSize size{image.width, image.height};
  Image out = image;
  if (const Box box = draw_resized_crop(options, size, key); box.width > 0)
    out = resize(cropped(image, box.left, box.top, box.width, box.height), size.width, size.height);
  const DrawnPlan plan = draw_plan(options, size, key);
  if (options.pad > 0) out = cropped(out, plan.image.left, plan.image.top, size.width, size.height);
  if (plan.image.flip != 0) flip_horizontal(out);
  for (const PixelStep& step : plan.steps) out = apply_step(out, step);
  run_erase(OneThread(), plan.image.erased, out.pixels.data(), static_cast<int>(size.width));
  return out;
}

MixedBatch mixed(const Tensor& pixels, const MixOptions& mixing, RandomKey key) {
  check(pixels.rank() == 4 && pixels.dtype() == DType::f32, "mixed: found pixels of shape ", pixels.shape(),
        ", expected (B, C, Y, X) of f32");
  MixPlan plan = draw_mix(mixing, pixels.size(0), pixels.size(2), pixels.size(3), key);
  if (plan.other.empty()) return {pixels};
  Tensor out = mixed_pixels(pixels, Tensor::from(plan.other, {std::ssize(plan.other)}, pixels.device()), plan);
  return {.pixels = std::move(out), .other = std::move(plan.other), .share = plan.share};
}

}  // namespace heed
