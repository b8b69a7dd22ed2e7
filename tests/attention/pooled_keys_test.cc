// Pooled keys against a plain double reference: whole squares and partial ones at the border, the mean and the convolution.
#include "heed/attention/pooled_keys.h"

#include <gtest/gtest.h>

#include "heed/attention/attention.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct GridSizes {
  int64_t B, G, height, width, D, r, O;
};

const GridSizes kSizes[] = {
    {1, 1, 1, 1, 1, 1, 1}, {2, 2, 4, 6, 3, 2, 2}, {1, 2, 7, 5, 4, 2, 3}, {1, 1, 5, 7, 17, 3, 5}, {2, 1, 3, 2, 2, 4, 1}};

// Calls visit(token, square, token's place inside its square, tokens in that square) for a grid.
template <class Visit>
void for_tokens(const GridSizes& z, const Visit& visit) {
  const int64_t along = (z.width + z.r - 1) / z.r;
  for (int64_t y = 0; y < z.height; ++y)
    for (int64_t x = 0; x < z.width; ++x) {
      const int64_t tokens = std::min(z.r, z.height - y / z.r * z.r) * std::min(z.r, z.width - x / z.r * z.r);
      visit(y * z.width + x, y / z.r * along + x / z.r, y % z.r * z.r + x % z.r, tokens);
    }
}

int64_t squares_of(const GridSizes& z) { return (z.height + z.r - 1) / z.r * ((z.width + z.r - 1) / z.r); }

Many mean_reference(const GridSizes& z, const Many& x) {
  Doubles out({z.B, z.G, squares_of(z), z.D});
  for (int64_t head = 0; head < z.B * z.G; ++head)
    for_tokens(z, [&](int64_t token, int64_t square, int64_t, int64_t tokens) {
      for (int64_t d = 0; d < z.D; ++d)
        out[(head * squares_of(z) + square) * z.D + d] += x[0][(head * z.height * z.width + token) * z.D + d] / static_cast<double>(tokens);
    });
  return {out};
}

Many convolution_reference(const GridSizes& z, const Many& x) {
  Doubles out({z.B, z.G, squares_of(z), z.O});
  for (int64_t i = 0; i < out.size(); ++i) out[i] = x[2][i % z.O];
  for (int64_t head = 0; head < z.B * z.G; ++head)
    for_tokens(z, [&](int64_t token, int64_t square, int64_t place, int64_t) {
      for (int64_t o = 0; o < z.O; ++o)
        for (int64_t d = 0; d < z.D; ++d)
          out[(head * squares_of(z) + square) * z.O + o] +=
              x[0][(head * z.height * z.width + token) * z.D + d] * x[1][(o * z.D + d) * z.r * z.r + place];
    });
  return {out};
}

std::string words(const GridSizes& z) { return std::to_string(z.height) + " x " + std::to_string(z.width) + " by " + std::to_string(z.r); }

TEST(PooledKeys, match_the_mean_of_each_square) {
  for (const GridSizes& z : kSizes)
    check_case("pooled_keys", {.what = words(z),
                               .inputs = {normal_input({z.B, z.G, z.height * z.width, z.D}, 1)},
                               .run =
                                   [=](const Tensors& t) {
                                     return Tensors{pooled_keys(t[0], {z.height, z.width}, z.r)};
                                   },
                               .reference = [=](const Many& x) { return mean_reference(z, x); },
                               .layout_changes_rounding = true});
}

TEST(PooledKeys, match_the_convolution_of_each_square) {
  for (const GridSizes& z : kSizes)
    check_case("pooled_keys", {.what = "convolution " + words(z),
                               .inputs = {normal_input({z.B, z.G, z.height * z.width, z.D}, 1), normal_input({z.O, z.D, z.r, z.r}, 2),
                                          normal_input({z.O}, 3)},
                               .run =
                                   [=](const Tensors& t) {
                                     return Tensors{pooled_keys(t[0], {z.height, z.width}, t[1], t[2])};
                                   },
                               .reference = [=](const Many& x) { return convolution_reference(z, x); },
                               .layout_changes_rounding = true});
}

TEST(PooledKeys, squares_of_one_token_change_nothing) {
  const Tensor q = normal_input({1, 2, 3, 8}, 1), k = normal_input({1, 2, 35, 8}, 2), v = normal_input({1, 2, 35, 8}, 3);
  EXPECT_EQ(attention(q, pooled_keys(k, {5, 7}, 1), pooled_keys(v, {5, 7}, 1)).to_vector<float>(), attention(q, k, v).to_vector<float>());
  EXPECT_EQ(attention(q, pooled_keys(k, {5, 7}, 2), pooled_keys(v, {5, 7}, 2)).shape(), q.shape());
}

TEST(PooledKeys, report_invalid_arguments) {
  const Tensor x = Tensor::zeros({1, 2, 12, 4}, test_device());
  expect_error([&] { pooled_keys(x, {3, 5}, 2); }, "12 tokens on a grid of 3 x 5");
  expect_error([&] { pooled_keys(x, {3, 4}, 0); }, "squares of 0 x 0 tokens");
  expect_error([&] { pooled_keys(Tensor::zeros({12, 4}, test_device()), {3, 4}, 2); }, "expected (B, G, M, D)");
  expect_error([&] { pooled_keys(x, {3, 4}, Tensor::zeros({4, 5, 2, 2}, test_device())); }, "tokens have 4 numbers, the weight 5");
  expect_error([&] { pooled_keys(x, {3, 4}, Tensor::zeros({4, 4, 2, 3}, test_device())); }, "expected (O, D, r, r)");
}

}  // namespace
}  // namespace heed::test
