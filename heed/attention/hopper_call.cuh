// A call of the Hopper attention kernels on its way from the arguments (hopper_attention.cu) to the kernels. Each kernel has a .cu file of
// its own, so that they are compiled at the same time.
#pragma once

#include "heed/attention/hopper_backward.cuh"
#include "heed/cuda/tensor_map.cuh"

namespace heed::cuda {

struct HopperCall {
  HopperCase which;
  AttentionSizes full_sizes;
  HopperSizes sizes;
  HopperCausal causal{};
  HopperGaussian gaussian{};
  Bf16 *query_features = nullptr, *key_features = nullptr;  // (H, N, 16), (M, 16)
  float* spread = nullptr;                                  // (H, 4, 2 reach)
  int reach = 0;

  MappedTensor queries(const TokenRows& x) const { return mapped(x, sizes.H, sizes.N); }
  MappedTensor keys(const TokenRows& x) const { return mapped(x, sizes.G, sizes.M); }
  MappedTensor mapped(const TokenRows& x, int64_t heads, int64_t tokens) const {
    return {x.data, sizes.B, heads, tokens, full_sizes.D, x.item, x.head, x.token};
  }
  CUtensorMap query_feature_map(int rows) const {
    const int64_t per_head = sizes.N * hopper::kFeatures;
    return narrow_map({query_features, 1, sizes.H, sizes.N, hopper::kFeatures, sizes.H * per_head, per_head, hopper::kFeatures}, rows);
  }
  CUtensorMap key_feature_map(int rows) const {
    const int64_t all = sizes.M * hopper::kFeatures;
    return narrow_map({key_features, 1, 1, sizes.M, hopper::kFeatures, all, all, hopper::kFeatures}, rows);
  }

  // Calls visit with the term as kernels take it.
  template <class Visit>
  void with_term(const Visit& visit) const {
    switch (which.term) {
      case HopperTerm::plain: return visit(HopperPlain{});
      case HopperTerm::causal: return visit(causal);
      case HopperTerm::gaussian: return visit(gaussian);
      case HopperTerm::table: break;
    }
    if (which.table_width == hopper::kTableWidth) return visit(HopperTable<hopper::kTableWidth>{{}, spread, reach});
    return visit(HopperTable<0>{{}, spread, reach});
  }
};

// The number of blocks: with persistent blocks, as many as can run at the same time, each looping over tiles; otherwise one per tile, which
// balances the load better if tiles differ in length.
inline unsigned tile_blocks(int64_t tiles, bool persistent) {
  return static_cast<unsigned>(persistent ? std::min<int64_t>(tiles, multiprocessor_count()) : tiles);
}

void start_hopper_forward(const HopperCall& call, const AttentionForward& args);
// parts: sums for the gradient of the term.
void start_hopper_query_gradient(const HopperCall& call, const AttentionBackward& args, const RowStatistics& statistics, float* parts);
void start_hopper_key_gradient(const HopperCall& call, const AttentionBackward& args, const RowStatistics& statistics);

// What is computed before and after (hopper_terms.cu).
void start_gaussian_features(const HopperCall& call);
void start_spread_table(const HopperCall& call, const TermArgs& term);
void start_row_statistics(const HopperCall& call, const AttentionBackward& args, float* log_sum, float* delta, int stride);
void start_gaussian_sums(const HopperCall& call, const float* parts, const GradientSink (&sinks)[2]);
void start_table_sums(const HopperCall& call, const TermArgs& term, float* parts, float* diagonals, const GradientSink& sink);

}  // namespace heed::cuda
