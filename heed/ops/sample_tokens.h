// Sampling the next tokens on the device of their logits, with the filters and draws of models/sample.h. Weights are fixed-point numbers,
// so that sums do not depend on their order.
#pragma once

#include <cmath>

#include "heed/core/kernel.h"
#include "heed/core/random.h"
#include "heed/ops/next_token.h"

namespace HEED_API heed {

// As in Sampling. first: the length of a prompt, whose next token is draw number 0
struct SampleOptions {
  float temperature = 1;
  int64_t top_k = 0;
  float top_p = 1, min_p = 0;
  uint64_t seed = 1;
  int64_t first = 0;
};

// Appends a token of every sequence. logits: (B, V)
void append_sampled_tokens(const Tensor& logits, const SampleOptions& options, const WrittenTokens& written);

struct AppendSampledTokens {
  const float* logits;
  int64_t *last, *lengths, *all;
  int64_t B, V, capacity;
  float temperature, top_p, min_p;
  int64_t top_k, first;
  uint64_t seed;

  static constexpr double kOne = 1099511627776.0;  // the weight of the best token: 2^40

  // The bits of a score as an integer of the same order; those of -0 and 0 give the same.
  HEED_HOST_DEVICE static uint32_t key_of(uint32_t bits) { return bits > 0x80000000u ? ~bits : bits | 0x80000000u; }
  // The weight of a token: e^(score - best).
  HEED_HOST_DEVICE static uint64_t weight_of(float relative) { return static_cast<uint64_t>(static_cast<double>(expf(relative)) * kOne); }
  // The total weight of the least likely tokens that top_p drops. At least the best token stays.
  HEED_HOST_DEVICE uint64_t dropped_weight(uint64_t total) const {
    const auto most = static_cast<uint64_t>((1 - static_cast<double>(top_p)) * static_cast<double>(total));
    return most < total ? most : total - 1;
  }
  // 53 random bits of a draw.
  HEED_HOST_DEVICE uint64_t random_bits(int64_t sequence, int64_t length) const {
    const auto words = philox({seed, static_cast<uint64_t>(sequence)}, static_cast<uint64_t>(length - first));
    return (uint64_t{words[0]} << 32 | words[1]) >> 11;
  }
  // floor(bits total / 2^53) for bits < 2^53, from products of 32-bit halves, which cannot overflow. (GPUs have an instruction for it.)
  static uint64_t share_of(uint64_t total, uint64_t bits) {
    constexpr uint64_t lower_32 = 0xffffffff, lower_21 = 0x1fffff;
    const uint64_t high = total >> 32, low = total & lower_32, first = bits >> 21, rest = bits & lower_21;
    const uint64_t high_rest = high * rest, low_first = low * first;                                      // in units of 2^32 and of 2^21
    const uint64_t carry = ((high_rest & lower_21) << 11) + (low_first & lower_32) + (low * rest >> 21);  // in units of 2^21
    return high * first + (high_rest >> 21) + (low_first >> 32) + (carry >> 32);
  }
};
HEED_KERNEL(append_sampled, AppendSampledTokens);

}  // namespace heed
