#include "heed/data/device_images.h"

#include <algorithm>
#include <atomic>

#include "heed/core/parallel.h"
#include "heed/data/augment_images.h"

namespace heed {

std::optional<DeviceImages> DeviceImages::copied(const ImageData& data, const Tensor& values, Device device, int64_t max_bytes) {
  if (data.count() == 0) return std::nullopt;
  const Image first = data.image(0);
  const int64_t each = std::ssize(first.pixels);
  if (each == 0 || data.count() > max_bytes / each) return std::nullopt;
  std::vector<uint8_t> all(static_cast<size_t>(data.count() * each));
  std::atomic<bool> same_size = true;
  parallel_tasks(data.count(), [&](int64_t i) {
    const Image image = data.image(i);
    if (image.width == first.width && image.height == first.height)
      std::copy(image.pixels.begin(), image.pixels.end(), all.begin() + i * each);
    else
      same_size = false;
  });
  if (!same_size) return std::nullopt;
  return DeviceImages(Tensor::from(all, {data.count(), first.height, first.width, 3}, device), values.to(device));
}

Tensor DeviceImages::pixels(const Tensor& which, const Tensor& plans) const {
  const Device device = images_.device();
  return augmented_pixels(images_, which.to(device), plans.defined() ? plans.to(device) : plans, values_);
}

}  // namespace heed
