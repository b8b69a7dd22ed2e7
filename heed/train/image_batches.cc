#include "heed/train/image_batches.h"

#include "heed/data/augment_images.h"
#include "heed/ops/ops.h"
#include "heed/train/batch_order.h"

namespace heed {
namespace {

// Inputs of a batch whose pixels are computed on the device.
constexpr const char *kIndices = "image_indices", *kPlans = "image_plans", *kMixedWith = "mixed_with";

Tensor indices(const std::vector<int64_t>& values) { return Tensor::from(values, {std::ssize(values)}, kCpu); }

std::vector<double> numbers_of(const MixPlan& plan) {
  return {static_cast<double>(plan.share),  plan.cut ? 1.0 : 0.0,           static_cast<double>(plan.top),
          static_cast<double>(plan.bottom), static_cast<double>(plan.left), static_cast<double>(plan.right)};
}
MixPlan mix_from(const std::vector<double>& numbers) {
  const auto whole = [&](size_t i) { return static_cast<int64_t>(numbers[i]); };
  return {.share = static_cast<float>(numbers[0]),
          .cut = numbers[1] != 0,
          .top = whole(2),
          .bottom = whole(3),
          .left = whole(4),
          .right = whole(5)};
}

}  // namespace

ImageBatches::ImageBatches(ImageData data, const ImageProcessor& processor, const AugmentOptions& augment, const MixOptions& mixing,
                           uint64_t seed)
    : data_(std::move(data)), processor_(processor), augment_(augment), mixing_(mixing), seed_(seed) {}

void ImageBatches::copy_to(Device device, int64_t max_bytes) {
  if (augment_.resized_crop != 1) return;  // resampling is done on the CPU
  images_ = DeviceImages::copied(data_, processor_.byte_values(), device, max_bytes);
}

Image ImageBatches::augmented_image(int64_t epoch, int64_t i) const {
  return augmented(data_.image(i), augment_, sample_key(seed_, epoch, i));
}

Batch ImageBatches::batch(int64_t epoch, const std::vector<int64_t>& which) const {
  std::vector<int64_t> labels;
  for (const int64_t i : which) labels.push_back(data_.labels[static_cast<size_t>(i)]);
  const RandomKey mix_key = sample_key(seed_ + 1, epoch, which[0]);
  Batch out{.inputs = {{"labels", indices(labels)}}, .samples = std::ssize(which)};
  MixPlan mix;
  if (images_) {
    std::vector<DrawnPlan> plans;
    const ImageSize size = images_->size();
    for (const int64_t i : which) plans.push_back(draw_plan(augment_, size, sample_key(seed_, epoch, i)));
    mix = draw_mix(mixing_, out.samples, size.height, size.width, mix_key);
    out.inputs[kIndices] = indices(which);
    out.inputs[kPlans] = plans_tensor(plans);
    if (!mix.other.empty()) out.inputs[kMixedWith] = indices(mix.other);
  } else {
    std::vector<Image> images;
    for (const int64_t i : which) images.push_back(augmented_image(epoch, i));
    MixedBatch mixed_batch = mixed(processor_.normalized(images), mixing_, mix_key);
    mix = {.other = std::move(mixed_batch.other), .share = mixed_batch.share};
    out.inputs["pixel_values"] = mixed_batch.pixels;
  }
  out.same_work = mix.other.empty();
  if (out.same_work) return out;
  std::vector<int64_t> others;
  for (const int64_t other : mix.other) others.push_back(labels[static_cast<size_t>(other)]);
  out.inputs["other_labels"] = indices(others);
  out.extra = numbers_of(mix);
  return out;
}

TensorMap ImageBatches::model_inputs(const Batch& batch) const {
  TensorMap out{{"labels", batch.inputs.at("labels")}};
  if (!images_) {
    out["pixel_values"] = batch.inputs.at("pixel_values");
    return out;
  }
  const Tensor pixels = images_->pixels(batch.inputs.at(kIndices), batch.inputs.at(kPlans));
  out["pixel_values"] =
      batch.extra.empty() ? pixels : mixed_pixels(pixels, batch.inputs.at(kMixedWith).to(pixels.device()), mix_from(batch.extra));
  return out;
}

Tensor ImageBatches::mixed_loss(const Batch& batch, const Tensor& loss, const Tensor& logits, float label_smoothing) {
  if (batch.extra.empty()) return loss;
  CrossEntropy options;
  options.label_smoothing = label_smoothing;
  const float share = mix_from(batch.extra).share;
  return loss * share + cross_entropy(logits, batch.inputs.at("other_labels").to(logits.device()), options) * (1 - share);
}

}  // namespace heed
