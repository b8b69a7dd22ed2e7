// Shared by the op and its kernels: the checked call, and how work is split.
#pragma once

#include <algorithm>
#include <vector>

#include "heed/attention/attention_kernels.h"
#include "heed/attention/terms.h"
#include "heed/core/random.h"

namespace heed {

// All options of a call except q, k and v, checked; keeps the tensors of the terms alive.
struct AttentionPlan {
  AttentionSizes sizes{};
  float beta = 1;
  std::vector<Term> terms{};  // checked, at most kMaxTerms
  bool hard = false;          // one-hot rows instead of softmax
  float dropout = 0;          // probability
  RandomKey dropout_key{};
};
ScoreArgs score_args(const AttentionPlan& plan, Device device);

// What forward saves for backward.
struct SoftmaxRows {
  Tensor log_sum;  // (B, H, N): log of the sum of e^s; infinity where every key is masked
  Tensor peak;     // (B, H, N, 2), hard only: the largest score, and 1 / how many keys have it
};

struct AttentionOptions;
AttentionPlan plan_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);  // checks shapes
Tensor scaled_by_head(const Tensor& q, const Tensor& beta);                                                 // q times a tensor beta

// q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E), strided except for their last axis -> out: (B, H, N, E), strides as those of q
Tensor forward_in_blocks(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, SoftmaxRows& rows);

// Few queries (few_queries.cc): the same. It is at least as fast up to 8 queries, for any number of heads; from there on, transposing
// keys pays off.
inline bool few_queries(const AttentionSizes& z) { return z.N <= 8; }
Tensor forward_of_few_queries(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, SoftmaxRows& rows);

struct AttentionGradients {
  Tensor q, k, v;
  Tensors parameters;  // of the terms, in order
};
// soft_out: (B, H, N, E), the output with soft rows; undefined: scores get no gradient. wanted: parameters that need one.
AttentionGradients attention_gradients(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& soft_out,
                                       const SoftmaxRows& rows, const Tensor& g, const std::vector<bool>& wanted);

inline TokenRows token_rows(const Tensor& x) { return {Raw::bytes(x), x.strides()[0], x.strides()[1], x.strides()[2]}; }

// (B, heads, tokens, width), detached, as kernels read it: f32 or bf16, with any strides, as long as the numbers of a token are contiguous.
Tensor readable(const Tensor& x);

// A new tensor (B, heads, tokens, width) with the axes of tokens and heads in the order in which x stores them.
Tensor strided_like(const Tensor& x, int64_t width, bool zero = false);

// How the CPU splits work. Scores of a pair of blocks, with their keys and values, fit in the L2 cache.
inline constexpr int64_t kLargestQueryBlock = 96, kLargestKeyBlock = 256;
// Rows of scores end in zeros or in scores of no key, so that formulas may run past the end, and their stride is not a power of two,
// which would map them all to the same sets of the L1 cache.
inline constexpr int64_t kRowPadding = 16;

// Blocks of equal size: 197 queries are three blocks of 66. Multiples of what the kernels process at a time.
inline int64_t even_block(int64_t size, int64_t limit, int64_t unit) {
  const int64_t blocks = std::max<int64_t>(1, (size + limit - 1) / limit);
  return std::max<int64_t>(1, ((size + blocks - 1) / blocks + unit - 1) / unit * unit);
}
inline int64_t query_block_of(int64_t N) { return std::min(even_block(N, kLargestQueryBlock, 6), std::max<int64_t>(N, 1)); }
inline int64_t key_block_of(int64_t M) { return even_block(M, kLargestKeyBlock, kKeyUnit); }

int64_t padded_width(int64_t width, Device device);  // CPU: rounded up to whole registers; other devices: unchanged

// x with its last axis padded with zeros to `width`; x itself where nothing is missing, or bf16, which kernels pad when they widen it.
Tensor padded(const Tensor& x, int64_t width);

}  // namespace heed
