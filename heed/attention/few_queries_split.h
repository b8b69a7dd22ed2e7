// How GPUs split the keys of few queries into chunks, depending on the shape alone. Read by g++, for the size of the workspace, and nvcc.
#pragma once

#include <algorithm>

#include "heed/attention/score_block.h"

namespace heed {

struct CudaFewQueriesSplit {
  int64_t rows;           // queries of all heads that share a key head
  int64_t rows_at_once;   // of a block: 1, 2, 4 or 8
  int64_t row_tiles;      // of a key head
  int64_t chunk, chunks;  // keys of a chunk, a multiple of 64; chunks of a key head

  explicit CudaFewQueriesSplit(const AttentionSizes& z) {
    constexpr int64_t blocks = 1024, shortest = 128, most = 128;
    rows = z.H / std::max<int64_t>(z.G, 1) * z.N;
    rows_at_once = rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : 8;
    row_tiles = (rows + rows_at_once - 1) / rows_at_once;
    const int64_t wanted = blocks / std::max<int64_t>(z.B * z.G * row_tiles, 1);
    const int64_t count = std::clamp<int64_t>(wanted, 1, std::clamp<int64_t>(z.M / shortest, 1, most));
    chunk = std::max<int64_t>(((z.M + count - 1) / count + 63) / 64 * 64, 64);
    chunks = std::max<int64_t>((z.M + chunk - 1) / chunk, 1);
  }

  // One chunk needs no sums of its own. Else sums (B H N, chunks, E), then largest scores and sums of weights (B H N, chunks).
  int64_t workspace_floats(const AttentionSizes& z) const { return chunks == 1 ? 0 : z.B * z.H * z.N * chunks * (z.E + 2); }
};

}  // namespace heed
