#include "heed/attention/hopper_query_gradient.cuh"

#include "heed/attention/hopper_call.cuh"

namespace heed::cuda {
namespace {

template <int D, int kKeys, int kStages, class Term>
void start_tiles(const HopperCall& call, const AttentionBackward& args, const RowStatistics& statistics, float* parts, const Term& term) {
  using Tile = QueryGradientTile<D, kKeys, kStages, Term>;
  const HopperSizes& z = call.sizes;
  BackwardMaps maps{.q = tile_map(call.queries(args.q), Tile::kQueries),
                    .k = tile_map(call.keys(args.k), kKeys),
                    .v = tile_map(call.keys(args.v), kKeys),
                    .g = tile_map(call.queries(args.g), Tile::kQueries),
                    .query_features = {},
                    .key_features = {}};
  if constexpr (Term::kFeatures) {
    maps.query_features = call.query_feature_map(Tile::kQueries);
    maps.key_features = call.key_feature_map(kKeys);
  }
  const int64_t tiles = int64_t{divide_up(z.N, Tile::kQueries)} * z.B * z.H;
  start(hopper_query_gradient<Tile>, tile_blocks(tiles, Tile::kPersistent), Tile::kThreads, Tile::kShared, maps, args.dq, statistics, parts,
        z, term);
}

}  // namespace

void start_hopper_query_gradient(const HopperCall& call, const AttentionBackward& args, const RowStatistics& statistics, float* parts) {
  const int64_t D = call.full_sizes.D;
  const bool few_keys = call.sizes.M <= 80;
  call.with_term([&]<class Term>(const Term& term) {
    if constexpr (!Term::kTable)
      if (D == 128) return start_tiles<128, 64, 3>(call, args, statistics, parts, term);
    if constexpr (std::is_same_v<Term, HopperPlain>)
      if (few_keys)
        return D == 64 ? start_tiles<64, 80, 3>(call, args, statistics, parts, term)
                       : start_tiles<32, 80, 3>(call, args, statistics, parts, term);
    if constexpr (!Term::kTable && !Term::kFeatures)
      if (D == 32) return start_tiles<32, 128, 3>(call, args, statistics, parts, term);
    start_tiles<64, 128, 3>(call, args, statistics, parts, term);
  });
}

}  // namespace heed::cuda
