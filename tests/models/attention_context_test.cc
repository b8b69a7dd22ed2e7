// Attention with a cache and at arbitrary positions against one pass over all tokens.
#include <gtest/gtest.h>

#include "heed/nn/decoder.h"
#include "tests/expect_error.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

void expect_near_output(const Tensor& a, const Tensor& b, float tolerance = 1e-5f) {
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << i;
}

TEST(AttentionContext, cached_steps_match_one_pass) {
  for (const bool fused : {false, true}) {
    Params params(1);
    const MultiHeadAttention layer =
        make_multi_head(Scope(params, initializer::bert()), {.width = 12, .heads = 3, .fused = fused, .rotary = Rotary(10, 4)});
    randomize(params, 0.5f);
    const NoGrad no_grad;
    const Tensor x = normal_input({2, 7, 12}, 1);
    const AttentionOptions causal{.terms = {Causal{}}};
    const Tensor whole = layer(x, causal);
    KeyValueCache cache;
    for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 7}})
      expect_near_output(layer(slice(x, 1, begin, end), causal, {}, {.cache = &cache}), slice(whole, 1, begin, end));
    EXPECT_EQ(cache.length(), 7);
  }
}

TEST(AttentionContext, rotary_positions_are_arbitrary) {
  const Rotary rotary(20, 8, {.pairing = Pairing::halves});
  const Tensor x = normal_input({2, 3, 2, 8}, 1);
  const Tensor each = Tensor::from(std::vector<int64_t>{4, 5, 11, 2}, {2, 2}, kCpu);
  const Tensor rotated = rotary(x, each);
  expect_near_output(slice(rotated, 0, 0, 1), rotary(slice(x, 0, 0, 1), 4), 0);
  expect_near_output(slice(slice(rotated, 0, 1, 2), 2, 0, 1), rotary(slice(slice(x, 0, 1, 2), 2, 0, 1), 11), 0);
  expect_near_output(slice(slice(rotated, 0, 1, 2), 2, 1, 2), rotary(slice(slice(x, 0, 1, 2), 2, 1, 2), 2), 0);
  expect_error(
      [&] {
        rotary(x, Tensor::from(std::vector<int64_t>{1, 2}, {1, 2}, kCpu));
      },
      "its positions (1, 2), expected (B, H, N, D) and (B, N)");
  expect_error([] { Rotary(4, 8, {.frequencies = {1, 2}}); }, "rotary: 2 frequencies for 8 features, expected half");
}

TEST(AttentionContext, given_frequencies_and_rounding) {
  const Tensor x = normal_input({1, 6, 4}, 1);
  expect_near_output(Rotary(6, 4, {.frequencies = {1, 0.01}})(x), Rotary(6, 4)(x), 1e-6f);
  expect_near_output(Rotary(6, 4, {.rounded = true})(x), Rotary(6, 4)(x), 1e-6f);
}

TEST(AttentionContext, a_decoder_layer_steps_with_the_keys_of_its_memory) {
  Params params(1);
  const DecoderLayer layer = make_decoder_layer(Scope(params, initializer::bert()), {.attention = {.width = 8, .heads = 2}});
  randomize(params, 0.5f);
  const NoGrad no_grad;
  const Tensor x = normal_input({2, 4, 8}, 1), memory = normal_input({2, 5, 8}, 2);
  const Tensor whole = layer(x, memory);
  const auto keys_values = layer.cross_attention.keys_values(memory);
  KeyValueCache cache;
  for (int64_t i = 0; i < 4; ++i)
    expect_near_output(layer.step(slice(x, 1, i, i + 1), keys_values, {}, {}, {.cache = &cache}), slice(whole, 1, i, i + 1));
}

TEST(AttentionContext, kinds_of_attention_refuse_unsupported_terms) {
  Params params(1);
  const Tensor x = normal_input({1, 6, 4}, 1);
  const auto layer = [&](const char* name, const AttentionKind& kind) {
    return make_multi_head(Scope(params, initializer::bert()) / name, {.width = 4, .heads = 2, .kind = kind});
  };
  const MultiHeadAttention linear = layer("a", {.kind = AttentionKind::Kind::linear}),
                           channel = layer("b", {.kind = AttentionKind::Kind::channel});
  expect_error([&] { linear(x, {.terms = {Dilated{2}}}); },
               "multi_head: linear attention supports the causal mask and lengths, no other terms");
  const auto mask = [](std::vector<uint8_t> keys) {
    return AttentionOptions{.terms = {Mask{reshape(converted(Tensor::from(keys, {1, 6}, kCpu), DType::boolean), {1, 1, 1, 6})}}};
  };
  expect_error([&] { linear(x, mask({1, 0, 1, 1, 0, 0})); }, "multi_head: linear attention supports lengths, not masks with gaps");
  expect_near_output(slice(linear(x, mask({1, 1, 1, 1, 0, 0})), 1, 0, 4), linear(slice(x, 1, 0, 4)));
  expect_error([&] { channel(x, {.terms = {Causal{}}}); }, "multi_head: 1 terms for channel or pooled attention, expected none");
}

}  // namespace
}  // namespace heed::test
