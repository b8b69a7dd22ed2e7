// Vision transformers at another image size: interpolated positions against the formula, and what cannot be changed.
#include "heed/models/resolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/autograd.h"
#include "tests/expect_error.h"
#include "tests/models/fixture_copy.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

// Keys (1981), equation 4, in expanded form.
double keys_kernel(double x, double a) {
  const double t = std::abs(x);
  if (t < 1) return (a + 2) * std::pow(t, 3) - (a + 3) * std::pow(t, 2) + 1;
  return t < 2 ? a * std::pow(t, 3) - 5 * a * std::pow(t, 2) + 8 * a * t - 4 * a : 0;
}

// The weight of cell `cell` of a line of `from` cells in cell `at` of `to` cells. Cells outside the line replicate its ends, or have no
// weight with antialiasing.
double line_weight(int64_t from, int64_t to, int64_t at, int64_t cell, GridFilter filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), centre = (static_cast<double>(at) + 0.5) * scale - 0.5;
  double sum = 0, own = 0;
  for (int64_t i = -9 - from; i < 9 + 2 * from; ++i) {
    const bool inside = 0 <= i && i < from, antialiased = filter == GridFilter::antialiased;
    const double distance = static_cast<double>(i) - centre;
    const double weight = antialiased ? (inside ? keys_kernel(distance / std::max(scale, 1.0), -0.5) : 0) : keys_kernel(distance, -0.75);
    sum += weight;
    if (std::clamp<int64_t>(i, 0, from - 1) == cell) own += weight;
  }
  return own / sum;
}

std::vector<float> interpolated(const std::vector<float>& x, const TokenGrid& from, const TokenGrid& to, GridFilter filter) {
  return interpolated_grid(Tensor::from(x, {from[0] * from[1], std::ssize(x) / (from[0] * from[1])}, kCpu), from, to, filter)
      .to_vector<float>();
}

TEST(Resolution, interpolates_with_the_cubic_kernel) {
  const TokenGrid from{7, 3};
  std::vector<float> grid;
  for (int i = 0; i < 7 * 3; ++i) grid.push_back(static_cast<float>(std::sin(1.7 * i)));
  for (const GridFilter filter : {GridFilter::bicubic, GridFilter::antialiased}) {
    for (const TokenGrid to : {TokenGrid{9, 5}, {2, 3}, {3, 2}, {7, 3}, {1, 9}}) {
      const std::vector<float> out = interpolated(grid, from, to, filter);
      ASSERT_EQ(std::ssize(out), to[0] * to[1]);
      for (int64_t y = 0; y < to[0]; ++y)
        for (int64_t x = 0; x < to[1]; ++x) {
          double expected = 0;
          for (int64_t i = 0; i < from[0]; ++i)
            for (int64_t j = 0; j < from[1]; ++j)
              expected += line_weight(from[0], to[0], y, i, filter) * line_weight(from[1], to[1], x, j, filter) *
                          static_cast<double>(grid[static_cast<size_t>(i * from[1] + j)]);
          EXPECT_NEAR(out[static_cast<size_t>(y * to[1] + x)], expected, 1e-6);
        }
    }
    EXPECT_EQ(interpolated(grid, from, from, filter), grid);
    // Features are interpolated one by one.
    EXPECT_EQ(interpolated({1, 5, 1, 5}, {1, 2}, {2, 2}, filter), (std::vector<float>{1, 5, 1, 5, 1, 5, 1, 5}));
  }
}

TEST(Resolution, class_tokens_keep_their_positions) {
  const NoGrad no_grad;
  for (const char* name : {"vit-classify", "deit-classify"}) {
    const Model model = load(kFixtures / name);
    const int64_t patch = model.config().at("patch_size"), side = 3 * patch;
    const Model other = at_image_size(model, {side, 2 * side});
    const Tensor before = position_table(model), after = position_table(other);
    const int64_t first = model.family().image_processor == "DeiT" ? 2 : 1;
    ASSERT_EQ(after.shape(), (Shape{1, first + 3 * 6, before.size(2)})) << name;
    const std::vector<float> old_values = before.to_vector<float>(), new_values = after.to_vector<float>();
    for (size_t i = 0; i < static_cast<size_t>(first * before.size(2)); ++i) EXPECT_EQ(old_values[i], new_values[i]) << name;
    const Tensor logits = other({{"pixel_values", Tensor::zeros({1, 3, side, 2 * side}, DType::f32, kCpu)}}).at("logits");
    EXPECT_EQ(logits.size(0), 1);
    // The model's own size gives its own outputs, bit for bit.
    const std::array<int64_t, 3> shape = image_shape(model);
    Rng rng(1);
    const Tensor pixels = random_normal({2, shape[0], shape[1], shape[2]}, 0, 1, rng, kCpu);
    EXPECT_EQ(at_image_size(model, {shape[1], shape[2]})({{"pixel_values", pixels}}).at("logits").to_vector<float>(),
              model({{"pixel_values", pixels}}).at("logits").to_vector<float>());
  }
}

TEST(Resolution, dinov2_interpolates_when_it_runs) {
  const NoGrad no_grad;
  for (const char* name : {"dinov2-classify", "dinov2-registers"}) {
    const Model model = load(kFixtures / name);  // 5 x 5 patches of 4 pixels
    Rng rng(1);
    for (const std::array<int64_t, 2> size : {std::array<int64_t, 2>{12, 32}, {28, 8}, {20, 20}}) {
      const Tensor pixels = random_normal({2, 3, size[0], size[1]}, 0, 1, rng, kCpu);
      const Tensor expected = at_image_size(model, size)({{"pixel_values", pixels}}).at("logits");
      EXPECT_EQ(model({{"pixel_values", pixels}}).at("logits").to_vector<float>(), expected.to_vector<float>()) << name;
    }
    expect_error<Error>([&] { model({{"pixel_values", Tensor::zeros({1, 3, 3, 20}, DType::f32, kCpu)}}); }, "shape (1, 3, 3, 20)");
  }
}

std::string refused_size(const Json& config, std::array<int64_t, 2> size) {
  try {
    at_image_size(make_model(config), size);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Resolution, says_why_a_size_does_not_fit) {
  Json config{{"architectures", {"ViTForImageClassification"}},
              {"hidden_size", 12},
              {"num_attention_heads", 2},
              {"num_hidden_layers", 1},
              {"intermediate_size", 8},
              {"image_size", 16},
              {"patch_size", 4},
              {"num_labels", 3},
              {"heed", {{"pooling", "flatten"}}}};
  EXPECT_NE(refused_size(config, {24, 24}).find("weights for each of 16 patches; images of 24 x 24 pixels have 36"), std::string::npos)
      << refused_size(config, {24, 24});
  config["heed"] = {{"pooling", "gap"}, {"positions", "learned_2d"}};
  EXPECT_EQ(refused_size(config, {24, 32}), "");
  EXPECT_NE(refused_size(config, {22, 24}).find("is not a multiple of 4 x 4"), std::string::npos);
  config["heed"] = {{"pooling", "gap"}, {"positions", "relative_2d"}};
  EXPECT_NE(refused_size(config, {24, 24}).find("only positions added to tokens are interpolated"), std::string::npos)
      << refused_size(config, {24, 24});
  config["heed"] = {{"pooling", "map"}, {"positions", "gaussian"}};
  EXPECT_EQ(refused_size(config, {24, 24}), "");
}

TEST(Resolution, writes_a_folder_that_runs) {
  const Folder folder;
  const Path from = kFixtures / "vit-classify";
  const std::array<int64_t, 3> shape = image_shape(load(from));
  save_at_image_size(from, folder / "large", {2 * shape[1], 2 * shape[2]});
  const Model large = load(folder / "large");
  EXPECT_EQ(image_shape(large), (std::array<int64_t, 3>{shape[0], 2 * shape[1], 2 * shape[2]}));
}

// The keys of the image processor for images of another size.
Json resized_keys(const FixtureCopy& model, const std::string& keys, std::array<int64_t, 2> size) {
  const Folder folder;
  put(model / "preprocessor_config.json", keys);
  save_at_image_size(model.path(), folder / "other", size);
  return read_json(folder / "other" / "preprocessor_config.json");
}

TEST(Resolution, crops_the_same_part_of_an_image) {
  const FixtureCopy deit("deit-classify");  // images of 16 x 16
  for (const std::string size : {"20", R"({"height": 20, "width": 20})"}) {
    const std::string keys =
        R"({"image_processor_type": "DeiTImageProcessor", "do_center_crop": true, "crop_size": 16, "size": )" + size + "}";
    const Json same = resized_keys(deit, keys, {16, 16}), other = resized_keys(deit, keys, {32, 24});
    EXPECT_EQ(same["size"], (Json{{"height", 20}, {"width", 20}}));
    EXPECT_EQ(same["crop_size"], (Json{{"height", 16}, {"width", 16}}));
    EXPECT_EQ(other["size"], (Json{{"height", 40}, {"width", 30}}));
    EXPECT_EQ(other["crop_size"], (Json{{"height", 32}, {"width", 24}}));
  }
  const std::string shorter = R"({"image_processor_type": "BitImageProcessor", "crop_size": 16, "size": )";
  for (const std::string size : {"20", R"({"shortest_edge": 20})"})
    EXPECT_EQ(resized_keys(deit, shorter + size + "}", {32, 24})["size"], (Json{{"shortest_edge", 40}}));
  const std::string whole = R"({"size": {"height": 16, "width": 16, "shortest_edge": null, "max_height": null, "max_width": null}})";
  EXPECT_EQ(resized_keys(deit, whole, {32, 24})["size"], (Json{{"height", 32}, {"width", 24}}));
  expect_refused([&] { resized_keys(deit, shorter + "9000000000000000000}", {32, 24}); }, "preprocessor_config.json: size is ");
}

TEST(Resolution, images_for_resnet_are_square) {
  const FixtureCopy resnet("resnet-basic");
  for (const std::string size : {"288", R"({"shortest_edge": 288})"}) {
    const std::string keys = R"({"image_processor_type": "ConvNextImageProcessor", "size": )" + size + "}";
    EXPECT_EQ(resized_keys(resnet, keys, {29, 29})["size"], (Json{{"shortest_edge", 29}}));
    expect_error<UsageError>([&] { resized_keys(resnet, keys, {32, 24}); }, "image size 24 x 32: the image processor ConvNext");
  }
}

}  // namespace
}  // namespace heed::test
