// Patches and pooling.
#include <gtest/gtest.h>

#include "heed/nn/patches.h"
#include "heed/nn/pooling.h"
#include "tests/expect_error.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

// The output of a convolution as tokens. (B, D, Y, X) -> (B, Y X, D)
Tensor as_tokens(const Tensor& y) { return permute(reshape(y, {y.size(0), y.size(1), -1}), {0, 2, 1}); }

TEST(Patches, embedding_matches_convolution_and_linear_layer) {
  Params params(1);
  const PatchEmbedding embed(Scope(params, initializer::vit()), 3, 4, 10);
  randomize(params);
  const Tensor x = normal_input({2, 3, 12, 8}, 1), y = embed(x);
  EXPECT_EQ(y.shape(), (Shape{2, 6, 10}));
  const Tensor rows = unfold_patches(x, 4, 4);
  EXPECT_EQ(y.to_vector<float>(), linear(rows, reshape(embed.weight, {10, 48}), embed.bias).to_vector<float>());
  expect_near(y, as_tokens(conv2d(x, embed.weight, embed.bias, {.stride = {4, 4}})), 2e-5);
}

// Integers are summed without rounding: all forms must agree in every bit, gradients too.
TEST(Patches, all_forms_have_the_same_bits_for_integers) {
  const auto whole = [](const Shape& shape, int64_t step) {
    std::vector<float> values;
    for (int64_t i = 0; i < count(shape); ++i) values.push_back(static_cast<float>(i * step % 17 - 8));
    return Tensor::from(values, shape, test_device());
  };
  Params params(1);
  const PatchEmbedding embed(Scope(params, initializer::vit()), 3, 2, 5);
  copy_into(whole({5, 3, 2, 2}, 5), embed.weight.detach());
  copy_into(whole({5}, 3), embed.bias.detach());
  const Tensor x = whole({2, 3, 6, 4}, 7).require_grad(), g = whole({2, 6, 5}, 11);
  backward(embed(x), g);
  const std::vector<float> dx = x.grad().to_vector<float>(), dw = embed.weight.grad().to_vector<float>();
  x.zero_grad();
  embed.weight.zero_grad();
  const Tensor convolved = as_tokens(conv2d(x, embed.weight, embed.bias, {.stride = {2, 2}}));
  EXPECT_EQ(embed(x).to_vector<float>(), convolved.to_vector<float>());
  backward(convolved, g);
  EXPECT_EQ(x.grad().to_vector<float>(), dx);
  EXPECT_EQ(embed.weight.grad().to_vector<float>(), dw);
}

TEST(Patches, space_to_depth_rearranges_pixels) {
  std::vector<float> values;
  for (int i = 0; i < 2 * 3 * 4 * 6; ++i) values.push_back(static_cast<float>(i));
  const Tensor x = Tensor::from(values, {2, 3, 4, 6}, test_device());
  const std::vector<float> y = space_to_depth(x, 2).to_vector<float>();
  EXPECT_EQ(space_to_depth(x, 2).shape(), (Shape{2, 6, 12}));
  EXPECT_EQ(space_to_depth(Tensor::ones({1, 3, 32, 32}, test_device()), 2).shape(), (Shape{1, 256, 12}));
  for_each_index({2, 3, 4, 6}, [&](const Shape& at) {
    const int64_t b = at[0], c = at[1], row = at[2], column = at[3];
    const int64_t index = ((b * 6 + row / 2 * 3 + column / 2) * 4 + row % 2 * 2 + column % 2) * 3 + c;
    EXPECT_EQ(y[static_cast<size_t>(index)], values[static_cast<size_t>(flat({2, 3, 4, 6}, at))]);
  });
  expect_error([&] { space_to_depth(x, 4); }, "patches: an image of 4 x 6 does not divide into patches of 4 x 4");
  expect_error(
      [&] {
        unfold_patches(Tensor::ones({3, 4, 4}, test_device()), 2, 2);
      },
      "patches: the image has shape (3, 4, 4), expected (B, C, Y, X)");
  Params params(1);
  expect_error([&] { PatchEmbedding(Scope(params, initializer::vit()), 1, 2, 5)(x); }, "has shape (2, 3, 4, 6), expected (B, 1, Y, X)");
}

TEST(Pooling, mean_excludes_padding) {
  const Tensor x = normal_input({2, 4, 3}, 1), lengths = Tensor::from(std::vector<int64_t>{4, 2}, {2}, test_device());
  const Tensor y = pool_mean(x, lengths), plain_mean = pool_mean(x);
  expect_near(slice(y, 0, 0, 1), slice(plain_mean, 0, 0, 1), 1e-6);
  expect_near(slice(y, 0, 1, 2), mean(slice(slice(x, 0, 1, 2), 1, 0, 2), {1}), 1e-6);
  expect_error(
      [&] {
        pool_mean(x, Tensor::from(std::vector<int64_t>{4, 5}, {2}, test_device()));
      },
      "pool_mean: a length of 5, expected 1 to 4");
  expect_error([&] { pool_mean(x, Tensor::from(std::vector<int64_t>{4}, {1}, test_device())); },
               "pool_mean: lengths of shape (1), expected (2)");
}

TEST(Pooling, attention_matches_the_reference) {
  Params params(1);
  const AttentionPooling pool = make_attention_pooling(Scope(params, initializer::vit()) / "map", {.width = 4, .heads = 2},
                                                       {.hidden_width = 5, .activation = Activation::gelu}, 1e-3f);
  EXPECT_LE(max(pool.probe).item(), std::sqrt(6.0f / 5));
  randomize(params, 0.7f);
  check_module("map", {.params = params,
                       .inputs = {normal_input({2, 3, 4}, 1)},
                       .run = [&](const Tensors& in) { return pool(in[0]); },
                       .reference =
                           [](const NamedDoubles& p, const Many& in) {
                             Doubles query({2, 1, 4});
                             for (int64_t i = 0; i < 8; ++i) query[i] = p.at("map.probe")[i % 4];
                             const Doubles y = plain::multi_head(p, "map.attention", query, in[0], 2, 2);
                             const Doubles middle = plain::linear(p, "map.feed_forward.up", plain::norm(p, "map.norm", y, 1e-3f));
                             return plain::add(y, plain::linear(p, "map.feed_forward.down", plain::map(middle, plain::gelu)));
                           },
                       .tolerance = 1e-5,
                       .gradient_tolerance = 1e-4});
}

TEST(Pooling, supports_every_kind) {
  Params params(1);
  const Tensor x = normal_input({2, 5, 4}, 1);
  for (const Pooling kind : {Pooling::class_token, Pooling::mean, Pooling::attention, Pooling::flatten}) {
    Pool pool{.kind = kind};
    if (pool.kind == Pooling::attention) pool.attention = make_attention_pooling(Scope(params, initializer::vit()), {.width = 4}, {});
    EXPECT_EQ(pool(x).shape(), (Shape{2, pool.kind == Pooling::flatten ? 20 : 4})) << static_cast<int>(kind);
  }
  expect_error([] { Pool()(Tensor::ones({2, 3}, test_device())); }, "pool: x has shape (2, 3), expected (B, N, D)");
}

}  // namespace
}  // namespace heed::test
