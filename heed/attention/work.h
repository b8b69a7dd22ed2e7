// What the op asks of the kernels, and what the kernels of forward and backward share.
#pragma once

#include <vector>

#include "heed/attention/terms.h"
#include "heed/core/random.h"
#include "heed/core/raw.h"

namespace heed {

// Everything but q, k and v that says what to compute.
struct AttentionPlan {
  AttentionSizes sizes{};
  float beta = 1;
  std::vector<Term> terms{};
  bool hard = false;  // one-hot rows instead of softmax
  float dropout = 0;  // probability
  RandomKey dropout_key{};

  // Rows [i0, i1) of the queries at their positions.
  ScoreBlock block(int64_t b, int64_t h, int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    return {b, h, sizes.first_query + i0, sizes.first_query + i1, j0, j1, sizes.first_query};
  }
};

// What forward keeps for backward: two numbers a query.
struct AttentionTotals {
  Tensor log_total;  // (B, H, N): log of the sum of e^s; infinity where every key is masked
  Tensor peak;       // (B, H, N, 2), hard only: the largest score, and 1 / how many keys have it
};

struct AttentionOptions;
AttentionPlan plan_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);  // shapes are checked
Tensor scaled_by_head(const Tensor& q, const Tensor& beta);                                                 // what a tensor beta means

// q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E), strided except for their last axis -> out: (B, H, N, E), laid like q
Tensor attention_forward(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, AttentionTotals& totals);

// Few queries (few_queries.cc): the same. Up to 8 queries it wins or draws, whatever the heads; behind that, turning keys pays.
inline bool few_queries(const AttentionSizes& z) { return z.N <= 8; }
Tensor few_queries_forward(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, AttentionTotals& totals);

struct AttentionGradients {
  Tensor q, k, v;
  Tensors parameters;  // of the terms, in order
};
// soft_out: (B, H, N, E), the output with soft rows; undefined: scores get no gradient. wanted: which parameters get one.
AttentionGradients attention_backward(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& soft_out,
                                      const AttentionTotals& totals, const Tensor& g, const std::vector<bool>& wanted);

// (B, heads, tokens, width) where it lies: the numbers of a token together, everything else a stride apart.
struct TokenRows {
  float* data = nullptr;
  int64_t item = 0, head = 0, token = 0;
  float* at(int64_t b, int64_t h, int64_t i) const { return data + b * item + h * head + i * token; }
};
inline TokenRows token_rows(const Tensor& x) { return {raw<float>(x), x.strides()[0], x.strides()[1], x.strides()[2]}; }

// A new tensor (B, heads, tokens, width) whose tokens lie as those of x do: before or behind the heads.
Tensor laid_like(const Tensor& x, int64_t width, bool zero = false);

// Scores of a pair of blocks, with the keys and values they come from, fit the second cache.
inline constexpr int64_t kLargestQueryBlock = 96, kLargestKeyBlock = 256;
// Rows of scores end in zeros or in scores of no key, so that formulas may run over the end, and do not lie a power of
// two apart, which would put them all into the same corner of the first cache.
inline constexpr int64_t kRowPadding = 16;

// Even blocks: 197 queries are three of 66. Multiples of what the kernels work on at a time.
inline int64_t even_block(int64_t size, int64_t limit, int64_t unit) {
  const int64_t blocks = std::max<int64_t>(1, (size + limit - 1) / limit);
  return std::max<int64_t>(1, ((size + blocks - 1) / blocks + unit - 1) / unit * unit);
}
inline int64_t query_block_of(int64_t N) { return std::min(even_block(N, kLargestQueryBlock, 6), std::max<int64_t>(N, 1)); }
inline int64_t key_block_of(int64_t M) { return even_block(M, kLargestKeyBlock, kKeyUnit); }

int64_t padded_width(int64_t width);  // to whole registers, as the kernels see them

// x with its last axis padded with zeros to `width`; x itself where nothing is missing.
Tensor padded(const Tensor& x, int64_t width);

}  // namespace heed
