// Which calls of attention the Hopper kernels support, and the layout of their scratch memory. Compiled by g++ too, for workspace_bytes.
//
// Supported: bf16, D = E in {32, 64, 128}, rows that the copy engine (TMA) can read, softmax without dropout, beta > 0, with one of
//   no term
//   Causal
//   Gaussian2d, at D 64 and 128, on grids of up to 256 x 256
//   RelativeBias, and RelativeBias2d on grids of 32 columns, at D 64; their forward at D 128 too
// and KeyLengths with any of them but RelativeBias2d.
#pragma once

#include <optional>

#include "heed/attention/attention_kernels.h"

namespace heed {

enum class HopperTerm { plain, causal, gaussian, table };

struct HopperCase {
  HopperTerm term = HopperTerm::plain;
  int index = 0;                     // of the term in the sequence
  const int64_t* lengths = nullptr;  // (B), of the keys
  int causal_offset = 0;             // keep j <= i + offset, i from 0
  int table_width = 0;               // of the grid; 0: RelativeBias
};

std::optional<HopperCase> hopper_case(const AttentionForward& args);
std::optional<HopperCase> hopper_case(const AttentionBackward& args);

// Scratch memory of these cases in bytes; 0 for others.
int64_t hopper_forward_workspace(const AttentionForward& args);
int64_t hopper_backward_workspace(const AttentionBackward& args);

// Geometry that the scratch memory depends on.
namespace hopper {

inline constexpr int64_t kFeatures = 16;    // of a query or a key, bf16
inline constexpr int64_t kQueryTile = 128;  // queries of a tile in the backward kernels, two warpgroups of 64
inline constexpr int64_t kKeyTile = 128;    // keys of a tile in the backward kernels
inline constexpr int64_t kTableWidth = 32;  // of the grids of RelativeBias2d: 16 needs more registers than there are

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

// Rows of log_sum and delta: tiles of 128, 64 and 48 queries may read past the last query.
constexpr int64_t padded_queries(int64_t N) {
  const int64_t by_48 = round_up(N, 48), by_128 = round_up(N, kQueryTile);
  return by_48 > by_128 ? by_48 : by_128;
}

// Tables (hopper_table.cuh): places of tokens are spread, so that an entry depends on their distance alone.
constexpr int64_t table_step(int64_t width) { return width ? 2 : 1; }  // a block of 64 tokens or more takes so many times its places
constexpr int64_t table_reach(int64_t N, int64_t M, int64_t width) {   // the spread table has distances in [-reach, reach)
  return (round_up(N > M ? N : M, kKeyTile) + 512) * table_step(width);
}
// Sums of dS of 64 queries, by distance.
constexpr int64_t diagonal_count(int64_t M, int64_t width) { return table_step(width) * (round_up(M, kKeyTile) + kKeyTile); }

}  // namespace hopper

// Offsets in bytes into the workspace.
struct HopperWorkspace {
  int64_t query_features = 0, key_features = 0;  // (H, N, 16), (M, 16), bf16
  int64_t table = 0;                             // (H, 4, 2 reach)
  int64_t log_sum = 0, delta = 0;                // (B, H, padded_queries), backward only
  int64_t parts = 0;                             // backward only: (B, H, warps, 3), or (B, H, groups of 64 queries, diagonal_count)
  int64_t diagonals = 0;                         // (H, distances), backward only
  int64_t bytes = 0;

  HopperWorkspace(const HopperCase& which, const AttentionSizes& sizes, bool backward);
};
// How far apart rows, and columns, of a query and a key can be: key - query in [first, last]. RelativeBias: one row.
struct HopperDistances {
  int first_row, last_row, first_column, last_column;
  HEED_HOST_DEVICE int rows() const { return last_row - first_row + 1; }
  HEED_HOST_DEVICE int columns() const { return last_column - first_column + 1; }
};
HopperDistances hopper_distances(const AttentionSizes& sizes, int table_width);

}  // namespace heed
