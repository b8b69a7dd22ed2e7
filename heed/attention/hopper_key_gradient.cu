#include "heed/attention/hopper_key_gradient.cuh"

#include "heed/attention/hopper_call.cuh"

namespace heed::cuda {
namespace {

template <int D, int kQueries, int kStages, class Term>
void start_tiles(const HopperCall& call, const AttentionBackward& args, const RowStatistics& statistics, const Term& term) {
  using Tile = KeyGradientTile<D, kQueries, kStages, Term>;
  const HopperSizes& z = call.sizes;
  BackwardMaps maps{.q = tile_map(call.queries(args.q), kQueries),
                    .k = tile_map(call.keys(args.k), Tile::kKeys),
                    .v = tile_map(call.keys(args.v), Tile::kKeys),
                    .g = tile_map(call.queries(args.g), kQueries),
                    .query_features = {},
                    .key_features = {}};
  if constexpr (Term::kFeatures) {
    maps.query_features = call.query_feature_map(kQueries);
    maps.key_features = call.key_feature_map(Tile::kKeys);
  }
  const int64_t tiles = int64_t{divide_up(z.M, Tile::kKeys)} * z.B * z.G;
  start(hopper_key_gradient<Tile>, tile_blocks(tiles, Tile::kPersistent), Tile::kThreads, Tile::kShared, maps, args.dk, args.dv, statistics,
        z, term);
}

}  // namespace

void start_hopper_key_gradient(const HopperCall& call, const AttentionBackward& args, const RowStatistics& statistics) {
  const int64_t D = call.full_sizes.D;
  call.with_term([&]<class Term>(const Term& term) {
    if constexpr (!Term::kTable)
      if (D == 128) return start_tiles<128, 48, 3>(call, args, statistics, term);
    if constexpr (!Term::kTable && !Term::kFeatures)
      if (D == 32) return start_tiles<32, 64, 4>(call, args, statistics, term);
    start_tiles<64, 64, 4>(call, args, statistics, term);
  });
}

}  // namespace heed::cuda
