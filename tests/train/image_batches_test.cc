// Images in the memory of a device give the pixels of images that are augmented on the CPU, bit for bit.
#include "heed/train/image_batches.h"

#include <gtest/gtest.h>

#include "heed/data/augment_images.h"
#include "heed/models/config.h"
#include "tests/data/pixels.h"
#include "tests/expect_error.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

constexpr int64_t kImages = 24, kWidth = 13, kHeight = 9;

ImageData different_images() {
  ImageData data{.classes = {"a", "b", "c"}};
  for (int64_t i = 0; i < kImages; ++i) data.labels.push_back(i % 3);
  data.image = [](int64_t i) {
    Image image = some_image(kWidth, kHeight);
    for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(byte * (i + 1) / 20 + i);
    return image;
  };
  return data;
}

ImageProcessor processor(int64_t channels) {
  const Json keys{{"do_resize", false}, {"image_mean", {0.4, 0.5, 0.6}}, {"image_std", {0.2, 0.3, 0.4}}};
  const Json grey{{"do_resize", false}, {"image_mean", 0.4}, {"image_std", 0.2}};
  return ImageProcessor(Config(channels == 1 ? grey : keys, "preprocessor_config.json"), {.channels = channels});
}

TensorMap inputs_of(const AugmentOptions& augment, const MixOptions& mixing, int64_t channels, bool on_device, int64_t epoch) {
  ImageBatches batches(different_images(), processor(channels), augment, mixing, 7);
  if (on_device) {
    batches.copy_to(test_device(), 1 << 20);
    EXPECT_TRUE(batches.on_device());
  }
  const Batch batch = batches.batch(epoch, {3, 17, 4, 0, 23, 11, 12, 5});
  EXPECT_EQ(batch.inputs.contains("pixel_values"), !on_device);
  EXPECT_EQ(batch.same_work, mixing.mixup == 0 && mixing.cutmix == 0);
  return batches.model_inputs(batch);
}

void expect_same(const AugmentOptions& augment, const MixOptions& mixing = {}, int64_t channels = 3) {
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const TensorMap here = inputs_of(augment, mixing, channels, false, epoch), there = inputs_of(augment, mixing, channels, true, epoch);
    ASSERT_EQ(here.at("pixel_values").shape(), (Shape{8, channels, kHeight, kWidth}));
    ASSERT_EQ(here.at("pixel_values").to_vector<float>(), there.at("pixel_values").to_vector<float>());
    ASSERT_EQ(here.at("labels").to_vector<int64_t>(), there.at("labels").to_vector<int64_t>());
  }
}

TEST(ImageBatches, on_a_device_hold_the_same_pixels) {
  expect_same({});
  expect_same({}, {}, 1);
  expect_same({.pad = 4, .flip = true});
  expect_same({.colour = 0.4f});
  expect_same({.erase = 0.7f});
  expect_same({.pad = 2, .flip = true, .colour = 0.3f, .random_ops = 3, .random_strength = 0.8f, .erase = 0.5f});
  expect_same({.random_ops = 8, .random_strength = 1}, {}, 1);
}

TEST(ImageBatches, are_mixed_on_a_device_as_on_the_cpu) {
  expect_same({.pad = 2}, {.mixup = 0.8f});
  expect_same({.flip = true}, {.cutmix = 1});
  expect_same({.random_ops = 1}, {.mixup = 0.2f, .cutmix = 1});
}

TEST(ImageBatches, stay_on_the_cpu_where_they_must) {
  const auto on_device = [](ImageData data, const AugmentOptions& augment, int64_t bytes) {
    ImageBatches batches(std::move(data), processor(3), augment, {}, 7);
    batches.copy_to(test_device(), bytes);
    return batches.on_device();
  };
  const int64_t bytes = kImages * kWidth * kHeight * 3;
  EXPECT_TRUE(on_device(different_images(), {}, bytes));
  EXPECT_FALSE(on_device(different_images(), {}, bytes - 1));
  EXPECT_FALSE(on_device(different_images(), {.resized_crop = 0.5f}, bytes));
  ImageData sizes = different_images();
  sizes.image = [](int64_t i) { return some_image(kWidth + i % 2, kHeight); };
  EXPECT_FALSE(on_device(std::move(sizes), {}, 2 * bytes));
}

TEST(ImageBatches, wrong_plans_are_refused) {
  const Tensor images = Tensor::zeros({2, 4, 4, 3}, DType::u8, kCpu), which = Tensor::from(std::vector<int64_t>{0, 1}, {2}, kCpu),
               values = Tensor::zeros({3, 256}, kCpu);
  expect_error([&] { augmented_pixels(images, which, Tensor::zeros({2, 12}, DType::i64, kCpu), values); }, "found plans of shape (2, 12)");
  expect_error([&] { augmented_pixels(images, which, {}, Tensor::zeros({2, 256}, kCpu)); }, "found values of shape (2, 256)");
  expect_error([&] { plans_tensor({}); }, "found no plans");
}

}  // namespace
}  // namespace heed::test
