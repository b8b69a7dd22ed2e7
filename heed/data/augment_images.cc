#include "heed/data/augment_images.h"

#include <cstring>

#include "heed/core/copy.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"

namespace heed {

Tensor plans_tensor(std::span<const DrawnPlan> plans) {
  check(!plans.empty(), "plans_tensor: found no plans, expected at least one");
  const size_t steps = plans[0].steps.size();
  const int64_t words = AugmentImages::words(static_cast<int64_t>(steps));
  std::vector<int64_t> out(plans.size() * static_cast<size_t>(words));
  for (size_t b = 0; b < plans.size(); ++b) {
    check(plans[b].steps.size() == steps, "plans_tensor: found ", steps, " and ", plans[b].steps.size(), " steps in one batch");
    auto* const at = reinterpret_cast<std::byte*>(out.data() + static_cast<int64_t>(b) * words);
    std::memcpy(at, &plans[b].image, sizeof(ImagePlan));
    if (steps > 0) std::memcpy(at + sizeof(ImagePlan), plans[b].steps.data(), steps * sizeof(PixelStep));
  }
  return Tensor::from(out, {std::ssize(plans), words}, kCpu);
}

Tensor augmented_pixels(const Tensor& images, const Tensor& which, const Tensor& plans, const Tensor& values) {
  check(images.rank() == 4 && images.size(3) == 3 && images.dtype() == DType::u8, "augmented_pixels: found images of shape ",
        images.shape(), ", expected (count, Y, X, 3) of u8");
  check(which.rank() == 1 && which.dtype() == DType::i64, "augmented_pixels: found indices of shape ", which.shape(),
        ", expected (B) of i64");
  check(values.rank() == 2 && (values.size(0) == 1 || values.size(0) == 3) && values.size(1) == 256,
        "augmented_pixels: found values of shape ", values.shape(), ", expected (C, 256) with 1 or 3 channels");
  const int64_t B = which.size(0), least = AugmentImages::words(0), of_step = AugmentImages::words(1) - least;
  const int64_t words = plans.defined() ? plans.size(-1) : least;
  check(words >= least && (words - least) % of_step == 0 && (!plans.defined() || plans.shape() == Shape{B, words}),
        "augmented_pixels: found plans of shape ", plans.shape(), ", expected those of plans_tensor for ", B, " images");
  const Device device = common_device("augmented_pixels", {&images, &which, &plans, &values});
  const Tensor out = Tensor::empty({B, values.size(0), images.size(1), images.size(2)}, device);
  launch(augment_images, device,
         {.images = raw<uint8_t>(images),
          .which = raw<int64_t>(which),
          .plans = raw_or_null<int64_t>(plans),
          .values = raw<float>(values),
          .out = raw<float>(out),
          .B = B,
          .C = values.size(0),
          .Y = images.size(1),
          .X = images.size(2),
          .steps = (words - least) / of_step});
  return out;
}

Tensor mixed_pixels(const Tensor& pixels, const Tensor& other, const MixPlan& plan) {
  check(pixels.rank() == 4 && pixels.dtype() == DType::f32 && other.shape() == Shape{pixels.size(0)} && other.dtype() == DType::i64,
        "mixed_pixels: found pixels of shape ", pixels.shape(), " and indices of shape ", other.shape());
  const Device device = common_device("mixed_pixels", {&pixels, &other});
  const Tensor x = contiguous(pixels), out = Tensor::empty(pixels.shape(), device);
  launch(mix_images, device,
         {.x = raw<float>(x),
          .other = raw<int64_t>(other),
          .out = raw<float>(out),
          .B = pixels.size(0),
          .C = pixels.size(1),
          .Y = pixels.size(2),
          .X = pixels.size(3),
          .share = plan.share,
          .cut = plan.cut,
          .top = plan.top,
          .bottom = plan.bottom,
          .left = plan.left,
          .right = plan.right});
  return out;
}

void cpu::augment_images(const AugmentImages& p) {
  parallel_tasks(p.B, [&](int64_t b) {
    StepTables shared;
    augment_image(OneThread(), p, b, shared);
  });
}

void cpu::mix_images(const MixImages& p) {
  const int64_t image = p.C * p.Y * p.X;
  parallel_tasks(p.B, [&](int64_t b) {
    for (int64_t i = b * image; i < (b + 1) * image; ++i) p.out[i] = mixed_value(p, i);
  });
}

}  // namespace heed
