#include "heed/attention/hopper_forward.cuh"

#include "heed/attention/hopper_call.cuh"

namespace heed::cuda {
namespace {

template <int D, int kGroups, int kKeys, int kStages, class Term>
void start_tiles(const HopperCall& call, const AttentionForward& args, const Term& term) {
  using Tile = ForwardTile<D, kGroups, kKeys, kStages, Term>;
  const HopperSizes& z = call.sizes;
  ForwardMaps maps{.q = tile_map(call.queries(args.q), Tile::kQueries),
                   .k = tile_map(call.keys(args.k), kKeys),
                   .v = tile_map(call.keys(args.v), kKeys),
                   .query_features = {},
                   .key_features = {}};
  if constexpr (Term::kFeatures) {
    maps.query_features = call.query_feature_map(Tile::kQueries);
    maps.key_features = call.key_feature_map(kKeys);
  }
  const int64_t tiles = int64_t{divide_up(z.N, Tile::kQueries)} * z.B * z.H;
  start(hopper_forward<Tile>, tile_blocks(tiles, Tile::kPersistent), Tile::kThreads, Tile::kShared, maps, args.out, args.log_sum, z, term);
}

// Per row of its tiles the prototype was 1.2 times as fast with three groups (N 1024, D 64), but tiles of 192 queries may be emptier.
bool three_groups(int64_t N) { return 10 * hopper::round_up(N, 192) <= 12 * hopper::round_up(N, 128); }

}  // namespace

void start_hopper_forward(const HopperCall& call, const AttentionForward& args) {
  const int64_t D = call.full_sizes.D;
  const bool few_keys = call.sizes.M <= 80, wide = three_groups(call.sizes.N);
  call.with_term([&]<class Term>(const Term& term) {
    if (D == 128) return start_tiles<128, 2, 128, 2>(call, args, term);
    if constexpr (Term::kTable) {
      start_tiles<64, 2, 128, 3>(call, args, term);
    } else if constexpr (Term::kMask) {  // three groups would need more registers than there are
      D == 64 ? start_tiles<64, 2, 128, 3>(call, args, term) : start_tiles<32, 2, 128, 3>(call, args, term);
    } else if constexpr (Term::kFeatures) {
      wide ? start_tiles<64, 3, 128, 3>(call, args, term) : start_tiles<64, 2, 128, 3>(call, args, term);
    } else if (D == 64) {
      if (few_keys) return start_tiles<64, 2, 80, 3>(call, args, term);
      wide ? start_tiles<64, 3, 128, 3>(call, args, term) : start_tiles<64, 2, 128, 3>(call, args, term);
    } else {
      if (few_keys) return start_tiles<32, 2, 80, 3>(call, args, term);
      wide ? start_tiles<32, 3, 128, 3>(call, args, term) : start_tiles<32, 2, 128, 3>(call, args, term);
    }
  });
}

}  // namespace heed::cuda
