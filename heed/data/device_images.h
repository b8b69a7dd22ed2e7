// Images that stay in the memory of a device while a model trains on them, so that only indices and random choices are copied.
#pragma once

#include <optional>

#include "heed/core/api.h"
#include "heed/core/tensor.h"
#include "heed/data/image_data.h"

namespace HEED_API heed {

class DeviceImages {
 public:
  // Copies all images to the device. None if their sizes differ or they need more than max_bytes.
  // values: (C, 256) f32, the normalized value of every byte of each channel
  static std::optional<DeviceImages> copied(const ImageData& data, const Tensor& values, Device device, int64_t max_bytes);

  // which: (B) i64, plans: of plans_tensor (augment_images.h), or undefined for images as they are -> (B, C, Y, X) f32 on the device
  Tensor pixels(const Tensor& which, const Tensor& plans = {}) const;
  ImageSize size() const { return {images_.size(2), images_.size(1)}; }
  int64_t bytes() const { return images_.count(); }

 private:
  DeviceImages(Tensor images, Tensor values) : images_(std::move(images)), values_(std::move(values)) {}

  Tensor images_;  // (count, Y, X, 3) u8
  Tensor values_;
};

}  // namespace heed
