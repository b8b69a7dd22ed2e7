// How the CUDA kernels of f32_tiles.cuh split a product, depending on the shape alone, as workspaces depend on it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heed {

struct TilePlan {
  int64_t items = 1, M = 0, N = 0, K = 0;  // items products (M, K) by (K, N)
  int rows = 128, columns = 128;           // of a tile
  int64_t depth = 0, parts = 1;            // K is split into parts of `depth`; their sums are added later

  int64_t row_tiles() const { return (M + rows - 1) / rows; }
  int64_t column_tiles() const { return (N + columns - 1) / columns; }
  int64_t tiles() const { return items * row_tiles() * column_tiles() * parts; }
};

// Tiles of 64 if 128 would waste work or leave multiprocessors idle. most_parts: 1, or the number of parts that fit in memory.
inline TilePlan plan_tiles(int64_t items, int64_t M, int64_t N, int64_t K, int64_t most_parts = 1) {
  constexpr int64_t enough = 264, least_depth = 512;  // blocks: two for each multiprocessor of an H200
  TilePlan plan{.items = items, .M = M, .N = N, .K = K};
  const auto wastes = [](int64_t size) { return (size + 127) / 128 * 128 * 4 > (size + 63) / 64 * 64 * 5; };
  const auto too_few = [&] { return most_parts == 1 && plan.tiles() < enough; };
  if (wastes(M) || wastes(N) || too_few()) plan.rows = 64;  // the shapes are 128 x 128, 64 x 128, 64 x 64
  if (wastes(N) || too_few()) plan.columns = 64, plan.rows = 64;
  const int64_t wanted = std::max<int64_t>(1, std::min({most_parts, 2 * enough / std::max<int64_t>(1, plan.tiles()), K / least_depth}));
  plan.depth = std::max<int64_t>(16, ((K + wanted - 1) / wanted + 15) / 16 * 16);
  plan.parts = std::max<int64_t>(1, (K + plan.depth - 1) / plan.depth);
  return plan;
}

}  // namespace heed
