// Batches of augmented images for training. On a GPU the images stay in its memory if they fit: batches then hold only indices and
// random choices, and the GPU computes the same pixels as the CPU.
#pragma once

#include "heed/data/augment.h"
#include "heed/data/device_images.h"
#include "heed/models/image_processor.h"
#include "heed/train/task.h"

namespace heed {

class ImageBatches {
 public:
  // data: prepared images; they are normalized by the processor
  ImageBatches(ImageData data, const ImageProcessor& processor, const AugmentOptions& augment, const MixOptions& mixing, uint64_t seed);

  // Copies the images to the device if they take at most max_bytes, and the device supports all augmentations.
  void copy_to(Device device, int64_t max_bytes);
  const std::optional<DeviceImages>& on_device() const { return images_; }

  const ImageData& data() const { return data_; }
  Image augmented_image(int64_t epoch, int64_t i) const;
  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const;
  TensorMap model_inputs(const Batch& batch) const;  // pixel_values: (B, C, Y, X) f32, labels: (B) i64
  // cross_entropy(logits, labels), or its mean over both labels of mixed images. logits: (B, classes), loss: for the images' own labels
  static Tensor mixed_loss(const Batch& batch, const Tensor& loss, const Tensor& logits, float label_smoothing);

 private:
  ImageData data_;
  ImageProcessor processor_;
  AugmentOptions augment_;
  MixOptions mixing_;
  uint64_t seed_;
  std::optional<DeviceImages> images_ = {};
};

}  // namespace heed
