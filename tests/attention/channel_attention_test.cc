// Channel attention against a plain double reference, and against attention on transposed tokens.
#include "heed/attention/channel_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/attention/attention.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct ChannelSizes {
  int64_t B, G, N, M, C, D;
};

Many channel_reference(const ChannelSizes& z, double beta, const Many& x) {
  const Doubles &q = x[0], &k = x[1], &v = x[2];
  Doubles out({z.B, z.G, z.M, z.C});
  for (int64_t g = 0; g < z.B * z.G; ++g)
    for (int64_t c = 0; c < z.C; ++c) {
      std::vector<double> a(static_cast<size_t>(z.D));
      double total = 0;
      for (int64_t d = 0; d < z.D; ++d) {
        double score = 0;
        for (int64_t n = 0; n < z.N; ++n) score += beta * q[(g * z.N + n) * z.C + c] * k[(g * z.N + n) * z.D + d];
        total += a[static_cast<size_t>(d)] = std::exp(score);
      }
      for (int64_t m = 0; m < z.M; ++m)
        for (int64_t d = 0; d < z.D; ++d) out[(g * z.M + m) * z.C + c] += a[static_cast<size_t>(d)] / total * v[(g * z.M + m) * z.D + d];
    }
  return {out};
}

TEST(ChannelAttention, matches_the_reference) {
  for (const ChannelSizes& z : {ChannelSizes{1, 1, 1, 1, 1, 1}, ChannelSizes{2, 3, 5, 5, 4, 4}, ChannelSizes{1, 2, 37, 37, 3, 3},
                                ChannelSizes{1, 1, 2, 2, 17, 17}, ChannelSizes{1, 2, 7, 3, 5, 2}, ChannelSizes{2, 1, 1, 11, 1, 6}})
    for (const std::optional<float> beta : {std::optional<float>(), std::optional<float>(0.3f), std::optional<float>(0.0f)}) {
      const double b = beta.value_or(1 / std::sqrt(static_cast<float>(z.D)));
      check_case("channel_attention", {.what = "N " + std::to_string(z.N) + ", C " + std::to_string(z.C) + ", beta " + std::to_string(b),
                                       .inputs = {normal_input({z.B, z.G, z.N, z.C}, 1), normal_input({z.B, z.G, z.N, z.D}, 2),
                                                  normal_input({z.B, z.G, z.M, z.D}, 3)},
                                       .run = [=](const Tensors& t) { return Tensors{channel_attention(t[0], t[1], t[2], {beta})}; },
                                       .reference = [=](const Many& x) { return channel_reference(z, b, x); },
                                       .layout_changes_rounding = true});
    }
}

TEST(ChannelAttention, matches_attention_on_transposed_tokens) {
  const Tensor q = normal_input({2, 3, 41, 8}, 1), k = normal_input({2, 3, 41, 8}, 2), v = normal_input({2, 3, 41, 8}, 3);
  const auto transposed = [](const Tensor& x) { return transpose(x, 2, 3); };
  const auto got = channel_attention(q, k, v).to_vector<float>(),
             expected = transposed(attention(transposed(q), transposed(k), transposed(v), {1 / std::sqrt(8.0f), {}})).to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

TEST(ChannelAttention, accepts_strided_channel_groups) {
  const Tensor tokens = normal_input({2, 11, 12}, 1), groups = permute(reshape(tokens, {2, 11, 3, 4}), {0, 2, 1, 3});
  ASSERT_TRUE(groups.shares_data_with(tokens));
  const auto got = channel_attention(groups, groups, groups).to_vector<float>();
  const Tensor dense = contiguous(groups);
  const auto expected = channel_attention(dense, dense, dense).to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

TEST(ChannelAttention, reports_invalid_arguments) {
  const Tensor x = Tensor::zeros({1, 2, 5, 4}, test_device());
  expect_error([&] { channel_attention(x, Tensor::zeros({1, 2, 6, 4}, test_device()), x); }, "queries have 5 tokens, keys 6");
  expect_error([&] { channel_attention(x, x, Tensor::zeros({1, 2, 5, 3}, test_device())); }, "keys have 4 channels, values 3");
  expect_error([&] { channel_attention(x, Tensor::zeros({1, 1, 5, 4}, test_device()), x); }, "groups of 2, 1 and 2");
  expect_error([&] { channel_attention(x, x, Tensor::zeros({3, 2, 5, 4}, test_device())); }, "batches of 1, 1 and 3");
  expect_error([&] { channel_attention(Tensor::zeros({5, 4}, test_device()), x, x); }, "expected (B, G, N, C)");
}

}  // namespace
}  // namespace heed::test
