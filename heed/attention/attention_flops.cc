// Masks are asked by looking at the map that they alone would give.
#include "heed/attention/attention_flops.h"

#include <algorithm>
#include <numeric>

#include "heed/attention/probabilities.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

template <class... Kinds>
bool is_any_of(const Term& term) {
  return (std::holds_alternative<Kinds>(term) || ...);
}
bool hides(const Term& term) { return is_any_of<Causal, Window, Chunks, Dilated, KeyLengths, Mask, BlockSparse, GridWindow>(term); }

// Numbers that meet in one score, and those of them that have a gradient beside q and k.
int64_t content_width(const AttentionPlan& plan) { return plan.beta != 0 ? plan.sizes.D : 0; }
int64_t relative_width(const AttentionPlan& plan) {
  int64_t width = 0;
  for (const Term& term : plan.terms)
    if (const auto* keys = std::get_if<RelativeKeys>(&term)) width += keys->queries.size(3);
  return width;
}

}  // namespace

int64_t visible_pairs(const AttentionPlan& plan) {
  const AttentionSizes& z = plan.sizes;
  AttentionOptions masks{.beta = 0.0f, .first_query = z.first_query};
  std::copy_if(plan.terms.begin(), plan.terms.end(), std::back_inserter(masks.terms), hides);
  if (masks.terms.empty() || z.B * z.H * z.N * z.M == 0) return z.B * z.H * z.N * z.M;
  const NoGrad quiet;
  const Tensor nothing = Tensor::zeros({1, 1, 1, 1}), q = expand(nothing, {z.B, z.H, z.N, 1}), k = expand(nothing, {z.B, z.G, z.M, 1});
  int64_t seen = 0;
  const int64_t some = std::max<int64_t>(1, (int64_t{1} << 20) / (z.B * z.H * z.M));
  for (int64_t begin = 0; begin < z.N; begin += some) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(some, z.N - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    const std::vector<float> map = attention_probabilities(q, k, masks, {}, rows).to_vector<float>();
    seen += std::count_if(map.begin(), map.end(), [](float weight) { return weight > 0; });
  }
  return seen;
}

int64_t forward_multiply_adds(const AttentionPlan& plan) {
  return visible_pairs(plan) * (content_width(plan) + relative_width(plan) + plan.sizes.E);
}

// Scores once more and values; with soft rows also what values say to weights, and those to queries and keys.
int64_t backward_multiply_adds(const AttentionPlan& plan, bool soft_rows) {
  const int64_t scores = content_width(plan) + relative_width(plan), E = plan.sizes.E;
  return visible_pairs(plan) * (scores + E + (soft_rows ? E + 2 * scores : 0));
}

}  // namespace heed
