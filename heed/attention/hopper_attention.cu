// Attention on Hopper: from the arguments of the op to the kernels.
#include "heed/attention/hopper_attention.h"

#include "heed/attention/hopper_call.cuh"

namespace heed::cuda {
namespace {

// What `lower` and `raise` of registers, TMA and wgmma need: compute capability 9.0 and nothing else.
constexpr int kHopper = 90;

HopperCall call_of(const HopperCase& which, const ScoreArgs& scores, const HopperWorkspace& layout, void* workspace) {
  const AttentionSizes& z = scores.sizes;
  const TermArgs& term = scores.terms[which.index];
  constexpr int64_t kCacheBytes = 24 << 20;
  const int64_t heads_in_cache = std::clamp<int64_t>(kCacheBytes / (z.M * z.D * 4), 1, z.B * z.H);
  HopperCall call{.which = which,
                  .full_sizes = z,
                  .sizes = {.B = static_cast<int>(z.B),
                            .H = static_cast<int>(z.H),
                            .G = static_cast<int>(z.G),
                            .N = static_cast<int>(z.N),
                            .M = static_cast<int>(z.M),
                            .beta = scores.beta,
                            .scale = scores.beta * kLog2E,
                            .section = static_cast<int>(heads_in_cache),
                            .lengths = which.lengths}};
  auto* const base = static_cast<std::byte*>(workspace);
  call.causal.most_ahead = which.causal_offset;
  if (which.term == HopperTerm::gaussian) {
    const int64_t width = term.gaussian_2d.width;
    call.gaussian.args = term.gaussian_2d;
    call.gaussian.middle_row = static_cast<float>((z.M - 1) / width) / 2;
    call.gaussian.middle_column = static_cast<float>(width - 1) / 2;
    call.query_features = reinterpret_cast<Bf16*>(base + layout.query_features);
    call.key_features = reinterpret_cast<Bf16*>(base + layout.key_features);
    start_gaussian_features(call);
  } else if (which.term == HopperTerm::table) {
    call.spread = reinterpret_cast<float*>(base + layout.table);
    call.reach = static_cast<int>(hopper::table_reach(z.N, z.M, which.table_width));
    start_spread_table(call, term);
  }
  return call;
}

}  // namespace

bool hopper_attention_forward(const AttentionForward& args) {
  const auto which = hopper_case(args);
  if (!which || compute_capability() != kHopper) return false;
  const HopperWorkspace layout(*which, args.scores.sizes, false);
  if (layout.bytes > 0 && !args.workspace) return false;
  start_hopper_forward(call_of(*which, args.scores, layout, args.workspace), args);
  return true;
}

bool hopper_attention_backward(const AttentionBackward& args) {
  const auto which = hopper_case(args);
  if (!which || compute_capability() != kHopper || !args.workspace) return false;
  const AttentionSizes& z = args.scores.sizes;
  const HopperWorkspace layout(*which, z, true);
  auto* const base = static_cast<std::byte*>(args.workspace);
  const auto floats = [&](int64_t offset) { return reinterpret_cast<float*>(base + offset); };
  const HopperCall call = call_of(*which, args.scores, layout, args.workspace);
  const RowStatistics statistics{floats(layout.log_sum), floats(layout.delta), static_cast<int>(hopper::padded_queries(z.N))};
  start_row_statistics(call, args, floats(layout.log_sum), floats(layout.delta), statistics.stride);
  start_hopper_query_gradient(call, args, statistics, floats(layout.parts));
  start_hopper_key_gradient(call, args, statistics);
  const auto& sinks = args.sinks[which->index];
  if (which->term == HopperTerm::gaussian) start_gaussian_sums(call, floats(layout.parts), sinks);
  if (which->term == HopperTerm::table)
    start_table_sums(call, args.scores.terms[which->index], floats(layout.parts), floats(layout.diagonals), sinks[0]);
  return true;
}

}  // namespace heed::cuda
