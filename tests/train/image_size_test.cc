// Choice of the image size, and resizing.
#include "heed/train/image_size.h"

#include "heed/core/autograd.h"
#include "heed/models/architecture.h"
#include "heed/models/config.h"
#include "heed/models/image_processor.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

Json config_with(int64_t image, int64_t patch) { return {{"image_size", image}, {"patch_size", patch}}; }

ImageSize chosen_for(const std::vector<ImageSize>& sizes, const Json& config, bool files = true) {
  ImageData data;
  data.files = files;
  return default_image_size(data, sizes, config);
}

ImageSize square_of(int64_t side) { return {side, side}; }

TEST(ImageSize, is_a_side_or_width_x_height) {
  EXPECT_EQ(image_size_in("64"), square_of(64));
  EXPECT_EQ(image_size_in("96x64"), (ImageSize{.width = 96, .height = 64}));
  EXPECT_EQ(text_of({96, 64}), "96x64");
  EXPECT_EQ(text_of({64, 64}), "64");
  for (const char* bad : {"", "x", "64x", "x64", "0", "-4", "64x0", "64 x 64", "6.5", "64x64x3", "9000", "99999999999999999999"})
    EXPECT_THROW(image_size_in(bad), UsageError) << bad;
}

TEST(ImageSize, is_chosen_from_the_median_of_shorter_sides) {
  const std::vector<ImageSize> photos = {{4032, 3024}, {3024, 4032}, {640, 480}};
  EXPECT_EQ(chosen_for(photos, config_with(32, 4)), square_of(64));    // 16 patches per side
  EXPECT_EQ(chosen_for(photos, config_with(32, 16)), square_of(224));  // at most 224 pixels
  EXPECT_EQ(chosen_for(photos, config_with(224, 16)), square_of(224));
  EXPECT_EQ(chosen_for(photos, config_with(384, 16)), square_of(384));  // or the config's size
  EXPECT_EQ(chosen_for(photos, {{"image_size", 32}}), square_of(64));   // without patches
  EXPECT_EQ(chosen_for({{50, 41}, {47, 90}, {30, 300}}, config_with(32, 4)), square_of(40));
  EXPECT_EQ(chosen_for({{3, 2}, {2, 9}}, config_with(32, 4)), square_of(4));
  EXPECT_EQ(chosen_for({}, config_with(32, 4)), square_of(32));
}

TEST(ImageSize, of_small_images_of_one_size_is_unchanged) {
  const std::vector<ImageSize> small = {{28, 20}, {28, 20}}, odd = {{30, 30}, {30, 30}};
  EXPECT_EQ(chosen_for(small, config_with(32, 4)), (ImageSize{28, 20}));
  EXPECT_EQ(chosen_for(small, config_with(32, 4), false), (ImageSize{28, 20}));
  EXPECT_EQ(chosen_for(odd, config_with(32, 4)), square_of(28));         // files: a multiple of the patch size
  EXPECT_EQ(chosen_for(odd, config_with(32, 4), false), square_of(30));  // IDX and CIFAR: unchanged
  EXPECT_EQ(chosen_for({{100, 100}}, config_with(32, 4), false), square_of(32));
  EXPECT_EQ(model_image_size(small, config_with(32, 4)), (ImageSize{28, 20}));
  EXPECT_EQ(model_image_size({{100, 100}}, config_with(32, 4)), square_of(32));
}

TEST(ImageSize, must_be_whole_patches) {
  check_patches({96, 64}, config_with(32, 16));
  try {
    check_patches({50, 64}, config_with(32, 16));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "train: image=50x64 is not a multiple of the patch size 16, expected for example image=48x64, or another patch=");
  }
}

// Pixels encode their position: red grows to the right, green downwards.
Image ramp(int64_t width, int64_t height) {
  Image out{width, height};
  for (int64_t i = 0; i < width * height; ++i)
    for (const int64_t value : {1 + i % width, 1 + i / width, int64_t{255}}) out.pixels.push_back(static_cast<uint8_t>(value));
  return out;
}

TEST(ImageSize, positions_are_interpolated_before_training_if_the_model_takes_any_size) {
  const NoGrad no_grad;
  Model model = load(fixture("dinov2-registers"));  // patches of 4 pixels
  Rng rng(1);
  const Tensor pixels = random_normal({2, 3, 14, 23}, 0, 1, rng, kCpu);
  const std::vector<float> before = model({{"pixel_values", pixels}}).at("logits").to_vector<float>();
  fit_positions(model, {23, 14});
  EXPECT_EQ(image_shape(model), (std::array<int64_t, 3>{3, 12, 20}));
  EXPECT_EQ(position_table(model).size(1), 1 + 3 * 5);
  EXPECT_EQ(model({{"pixel_values", pixels}}).at("logits").to_vector<float>(), before);
  Model fixed = load(fixture("vit-classify"));
  const std::array<int64_t, 3> shape = image_shape(fixed);
  fit_positions(fixed, {23, 14});
  EXPECT_EQ(image_shape(fixed), shape);
}

TEST(Resizing, keeps_or_changes_the_shape_as_chosen) {
  const Image image = ramp(80, 40);
  const auto prepared = [&](const ImageSize& size, const char* resize, const std::vector<ImageSize>& sizes) {
    return ImageProcessor(Config(resize_keys(size, resize, sizes), "held")).prepared(image);
  };
  const auto red = [](const Image& from, int64_t x, int64_t y) { return int{from.pixels[static_cast<size_t>(3 * (y * from.width + x))]}; };
  const auto blue = [](const Image& from, int64_t x, int64_t y) {
    return int{from.pixels[static_cast<size_t>(3 * (y * from.width + x) + 2)]};
  };

  const Image crop = prepared({40, 40}, "crop", {{80, 40}});
  EXPECT_EQ(crop.pixels, center_crop(image, 40, 40).pixels);
  EXPECT_EQ(red(crop, 0, 0), 21);
  EXPECT_EQ(red(crop, 39, 0), 60);
  const Image squash = prepared({40, 40}, "squash", {{80, 40}});
  EXPECT_EQ(squash.pixels, resize(image, 40, 40).pixels);
  EXPECT_NEAR(red(squash, 39, 0), 79, 1);
  const Image pad = prepared({40, 40}, "pad", {{80, 40}});
  EXPECT_EQ(blue(pad, 20, 9), 0);
  EXPECT_EQ(blue(pad, 20, 10), 255);
  EXPECT_EQ(blue(pad, 20, 29), 255);
  EXPECT_EQ(blue(pad, 20, 30), 0);
  EXPECT_NEAR(red(pad, 39, 20), 79, 1);
  for (const Image& each : {crop, squash, pad}) {
    EXPECT_EQ(each.width, 40);
    EXPECT_EQ(each.height, 40);
  }
}

TEST(Resizing, of_crops_that_are_not_square_leaves_no_border) {
  const ImageSize size{96, 64};
  EXPECT_EQ(resize_keys(size, "crop", {{3000, 2000}})["size"], (Json{{"shortest_edge", 64}}));
  EXPECT_EQ(resize_keys(size, "crop", {{3000, 2000}, {4032, 3024}})["size"], (Json{{"shortest_edge", 72}}));
  EXPECT_EQ(resize_keys(size, "crop", {{3000, 2000}, {2000, 3000}})["size"], (Json{{"shortest_edge", 96}}));
  for (const ImageSize image : {ImageSize{3000, 2000}, {2000, 3000}, {101, 97}, {97, 101}, {7, 5}, {1, 1}, {511, 383}}) {
    const ImageProcessor reader(Config(resize_keys(size, "crop", {image}), "held"));
    const Image prepared =
        reader.prepared({image.width, image.height, std::vector<uint8_t>(static_cast<size_t>(3 * image.width * image.height), 200)});
    EXPECT_EQ(prepared.width, 96);
    EXPECT_EQ(prepared.height, 64);
    EXPECT_EQ(std::count(prepared.pixels.begin(), prepared.pixels.end(), 200), 3 * 96 * 64) << image.width << " x " << image.height;
  }
}

TEST(Resizing, is_written_in_the_keys_of_transformers) {
  const Json crop = resize_keys({64, 64}, "crop", {}), pad = resize_keys({96, 64}, "pad", {}), squash = resize_keys({96, 64}, "squash", {});
  EXPECT_EQ(crop,
            Json::parse(R"({"image_processor_type": "ViTImageProcessor", "do_resize": true, "resample": 2, "size": {"shortest_edge": 64},
                                  "do_center_crop": true, "crop_size": {"height": 64, "width": 64}})"));
  EXPECT_EQ(pad["size"], (Json{{"max_height", 64}, {"max_width", 96}}));
  EXPECT_EQ(pad["crop_size"], (Json{{"height", 64}, {"width", 96}}));
  EXPECT_EQ(squash["size"], (Json{{"height", 64}, {"width", 96}}));
  EXPECT_FALSE(squash.contains("do_center_crop"));
}

}  // namespace
}  // namespace heed::test
