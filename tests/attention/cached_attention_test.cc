// Attention of one new token per sequence to a cache whose lengths are on the device, token by token, against attention in one pass.
#include "heed/attention/cached_attention.h"

#include <gtest/gtest.h>

#include "heed/attention/attention.h"
#include "heed/core/copy.h"
#include "heed/nn/positions.h"
#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct CacheCase {
  int64_t B, H, G, D, capacity, tokens;  // `tokens` are in the cache before the first new one
  int64_t before = -1;
  bool rotary = false, halves = false;
};
// Within a chunk, at its ends and over several; grouped heads; a window; rotary positions.
const CacheCase kCacheCases[] = {{1, 2, 2, 64, 256, 0},
                                 {2, 3, 3, 64, 256, 143},
                                 {1, 4, 2, 8, 256, 253},
                                 {1, 2, 1, 64, 1024, 254},
                                 {2, 6, 2, 32, 1024, 766, 300},
                                 {1, 2, 2, 16, 512, 40, 7},
                                 {1, 4, 1, 128, 512, 255, -1, true, true},
                                 {1, 2, 2, 64, 256, 5, -1, true, false}};

// (B, G, n, D) and so on -> the rows of token `at`: (B, heads D)
Tensor token_rows_of(const Tensor& x, int64_t at) {
  return reshape(contiguous(slice(x, 2, at, at + 1)), {x.size(0), x.size(1) * x.size(3)});
}

void check_cached(const CacheCase& z, DType dtype, double tolerance) {
  constexpr int64_t steps = 3;
  const int64_t total = z.tokens + steps;
  const auto rounded = [&](const Tensor& x) { return dtype == DType::f32 ? x : cast(cast(x, dtype), DType::f32); };
  const Tensor q = normal_input({z.B, z.H, total, z.D}, 1), k = normal_input({z.B, z.G, total, z.D}, 2),
               v = normal_input({z.B, z.G, total, z.D}, 3);
  const Rotary rotary(z.capacity, z.D, {.pairing = z.halves ? Pairing::halves : Pairing::interleaved, .rotated = z.D / 2});
  const Tensor placed_q = z.rotary ? rotary(q) : q, placed_k = rounded(z.rotary ? rotary(k) : k), kept_v = rounded(v);
  const float beta = 0.4f;

  CachedHeads heads{.keys = Tensor::full({z.B, z.G, z.capacity, z.D}, NAN, dtype, test_device()),
                    .values = Tensor::full({z.B, z.G, z.capacity, z.D}, NAN, dtype, test_device()),
                    .lengths = Tensor::full({z.B}, static_cast<double>(z.tokens), DType::i64, test_device()),
                    .before = z.before,
                    .beta = beta};
  copy_into(slice(placed_k, 2, 0, z.tokens), slice(heads.keys, 2, 0, z.tokens));
  copy_into(slice(kept_v, 2, 0, z.tokens), slice(heads.values, 2, 0, z.tokens));
  std::tie(heads.tickets, heads.parts) = cached_attention_scratch(heads.keys, z.H);
  if (z.rotary) {
    heads.cosine = rotary.cosine.rows(z.capacity, test_device());
    heads.sine = rotary.sine.rows(z.capacity, test_device());
    heads.rotated = rotary.rotated;
    heads.halves = z.halves;
  }
  for (int64_t at = z.tokens; at < total; ++at) {
    AttentionOptions options{.beta = beta, .terms = {Causal{}}, .first_query = at};
    if (z.before >= 0) options.terms.push_back(Window{.before = z.before});
    const Tensor expected = attention(slice(placed_q, 2, at, at + 1), slice(placed_k, 2, 0, at + 1), slice(kept_v, 2, 0, at + 1), options);
    const Tensor out = Tensor::empty({z.B, z.H * z.D}, test_device());
    cached_attention(heads, concat({token_rows_of(q, at), token_rows_of(k, at), token_rows_of(v, at)}, 1), out);
    const std::vector<float> got = out.to_vector<float>(), wanted = token_rows_of(expected, 0).to_vector<float>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], tolerance) << "token " << at << ", " << i;
    const Tensor stored = slice(heads.keys, 2, at, at + 1), new_key = slice(placed_k, 2, at, at + 1);
    const std::vector<float> kept = stored.to_vector<float>(), key = new_key.to_vector<float>();
    for (size_t i = 0; i < kept.size(); ++i) ASSERT_NEAR(kept[i], key[i], tolerance * std::max(1.0f, std::abs(key[i]))) << i;
    copy_into(Tensor::full({z.B}, static_cast<double>(at + 1), DType::i64, test_device()), heads.lengths);
  }
}

TEST(CachedAttention, matches_attention_to_all_tokens) {
  const NoGrad quiet;
  for (const CacheCase& z : kCacheCases) {
    SCOPED_TRACE(testing::Message() << z.H << " heads of " << z.D << ", " << z.tokens << " of " << z.capacity << " tokens");
    // Both round scores, which are beta times a sum of D products of about 1: the error of each is about beta D 2^-24.
    const double tolerance = std::max(3e-6, 2 * 0.4 * static_cast<double>(z.D) * 0x1p-24);
    check_cached(z, DType::f32, tolerance);
    // A rotated key may round in the other direction.
    check_cached(z, DType::bf16, z.rotary ? 8e-3 : tolerance);
  }
}

TEST(CachedAttention, reports_invalid_arguments) {
  EXPECT_TRUE(cached_attention_supports(64, DType::bf16));
  EXPECT_FALSE(cached_attention_supports(80, DType::bf16));
  EXPECT_FALSE(cached_attention_supports(4, DType::bf16));
  CachedHeads heads{.keys = Tensor::zeros({1, 2, 256, 80}, test_device()), .values = Tensor::zeros({1, 2, 256, 80}, test_device())};
  expect_error(
      [&] {
        cached_attention(heads, normal_input({1, 480}, 1), normal_input({1, 160}, 1));
      },
      "cached_attention: keys (1, 2, 256, 80)");
  const Tensor cache = Tensor::zeros({1, 2, 256, 64}, test_device()), qkv = normal_input({1, 384}, 1), out = normal_input({1, 128}, 1);
  heads = {.keys = cache, .values = cache, .lengths = Tensor::full({1}, 256, DType::i64, test_device())};
  std::tie(heads.tickets, heads.parts) = cached_attention_scratch(slice(cache, 2, 0, 10), 1);
  expect_error([&] { cached_attention(heads, qkv, out); }, "parts (1, 1, 1, 66), expected (1), (2), (1, 2, 1, 66)");
  std::tie(heads.tickets, heads.parts) = cached_attention_scratch(cache, 2);
  if (test_device() == kCpu) {
    expect_error([&] { cached_attention(heads, qkv, out); }, "256 tokens before the new one, there is room for 256");
  }
}

}  // namespace
}  // namespace heed::test
