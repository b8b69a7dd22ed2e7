// Attention: one operation for every kind. It never stores the N x M map, forward or backward.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "heed/attention/terms.h"
#include "heed/core/api.h"
#include "heed/core/autograd.h"
#include "heed/core/random.h"

namespace HEED_API heed {

namespace op {
inline constexpr OpName attention{"attention"};
}

// The inverse temperature: by default 1 / sqrt(D); a number, or a tensor (1) or (H) that may be learned.
// 0: scores come from the terms alone.
struct Beta {
  std::optional<float> number;
  Tensor tensor;

  // Not given, a number, or a tensor.
  Beta() = default;
  Beta(float value) : number(value) {}
  Beta(std::optional<float> value) : number(value) {}
  Beta(Tensor per_head) : tensor(std::move(per_head)) {}

  // Whether there is a number or a tensor; the number for heads of width D.
  bool given() const { return number || tensor.defined(); }
  float number_for(int64_t D) const { return number.value_or(1 / std::sqrt(static_cast<float>(std::max<int64_t>(D, 1)))); }
};

// Hard attention is the limit of large beta: a query gets the value of its best key, or the mean over ties.
enum class Hard {
  no,
  straight_through,  // scores get the gradient of soft attention, values that of hard attention
  no_gradient,       // only values get a gradient
};

// How queries and keys are compared, and what is added to their scores.
struct AttentionOptions {
  Beta beta = {};
  std::vector<Term> terms = {};  // applied in this order to beta q.k, at most kMaxTerms
  Hard hard = Hard::no;
  float dropout = 0;        // probability of dropping a weight; the others are scaled by 1 / (1 - dropout); needs rng
  Rng* rng = nullptr;       // of dropout
  int64_t first_query = 0;  // position of the first query, i in the formulas of terms; with a cache, the number of keys before it
};

// softmax(beta q k^T + terms) v. q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E), H a multiple of G -> (B, H, N, E)
// A query with all keys masked gives zeros and gets no gradient.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

}  // namespace heed
