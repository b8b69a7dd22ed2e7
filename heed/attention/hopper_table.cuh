// Learned tables of relative positions in the Hopper kernels. Token t has the place spread(t) = t or, on a grid of W columns,
// t + (t / W) W: rows of 2 W places. Then the entry of a pair depends on spread(j) - spread(i) alone, and what a tile of scores needs is
// a slice of the spread table, which is copied with the tile of keys and loaded as the initial value of q k^T.
// The gradient is summed along diagonals spread(j) - spread(i): by threads over their own rows, over warps in shared memory, over the
// tiles in device memory, each in a fixed order.
#pragma once

#include "heed/attention/hopper_tiles.cuh"

namespace heed::cuda {

template <int kWidth>
inline constexpr int kTableStep = static_cast<int>(hopper::table_step(kWidth));

template <int kWidth>
__device__ __forceinline__ constexpr int spread(int t) {
  if constexpr (kWidth == 0) {
    return t;
  } else {
    return t + t / kWidth * kWidth;
  }
}

// Floats of a slice for `rows` x `columns` scores, and of its two copies in shared memory, 16 banks apart.
template <class Term, int rows, int columns>
inline constexpr int kSlice = Term::kTable ? kTableStep<Term::kWidth>*(rows + columns) : 0;
template <class Term, int rows, int columns>
inline constexpr int kSliceCopies = Term::kTable ? 2 * kSlice<Term, rows, columns> + 32 : 0;

// The slice for rows from `row` on and columns from `column` on. by_queries: rows are keys, columns queries.
template <class Term, int rows, int columns>
__device__ __forceinline__ void load_slice(float* to, const Term& term, int h, bool by_queries, int row, int column, Barrier& done) {
  constexpr int kStep = kTableStep<Term::kWidth>, kCount = kSlice<Term, rows, columns>;
  for (int copy = 0; copy < 2; ++copy) {
    const int64_t line = 4 * h + 2 * (by_queries ? 1 : 0) + copy;
    load_bytes(to + copy * (kCount + 16), term.spread + line * 2 * term.reach + term.reach + kStep * (column - row - rows), 4 * kCount,
               done);
  }
}
// Where a thread starts to read: odd rows read the second copy, which begins one entry later, so that pairs have even places.
template <class Term, int rows, int columns>
__device__ __forceinline__ int slice_start(int row, int column) {
  const int place = column - spread<Term::kWidth>(row) + kTableStep<Term::kWidth> * rows;
  return row % 2 ? kSlice<Term, rows, columns> + 16 + place - 1 : place;
}
// Row r + 8 of a thread repeats its row r, 8 columns on, within a row of the grid.
template <class Term, int count>
__device__ __forceinline__ void slice_to_sums(float (&sum)[count], const float* slice) {
  constexpr int kRun = Term::kWidth ? Term::kWidth / 8 : count / 4;
  float2 before;
#pragma unroll
  for (int n = 0; n < count / 4; ++n) {
    const int at = 8 * n + n / kRun * Term::kWidth;
    if (n % kRun == 0) before = *reinterpret_cast<const float2*>(slice + at - 8);
    sum[4 * n + 2] = before.x;
    sum[4 * n + 3] = before.y;
    before = *reinterpret_cast<const float2*>(slice + at);
    sum[4 * n] = before.x;
    sum[4 * n + 1] = before.y;
  }
}

// No load after it is made before: not more at a time than there are registers for.
__device__ __forceinline__ void wait_with_loads() { asm volatile("" ::: "memory"); }

// Sums of dS (64 queries, 128 keys) of a warpgroup along diagonals. A thread adds its two rows, then threads of an even and an odd row
// add theirs by a shuffle: 16 rows of sums in shared memory, which other warps add. Place of a sum: spread(j - j0) - spread(i - i0) +
// kOrigin.
template <int kWidth>
struct Diagonals {
  static constexpr int kKeys = 128, kSpan = kTableStep<kWidth> * kKeys, kRuns = kWidth ? kKeys / (kWidth ? kWidth : 1) : 1;
  static constexpr int kRun = kKeys / 8 / kRuns;  // groups of 8 keys in a row of the grid
  static constexpr int kOrigin = kWidth ? 128 - kWidth : 72, kPlaces = kWidth ? 384 - 2 * kWidth : 200;
  static constexpr int kStride = (kPlaces + 6 + 23) / 32 * 32 + 8, kFloats = 16 * kStride;
  static constexpr int kChunks = kSpan / 64, kChunksPerWarp = (kChunks + 2) / 3;
  static_assert(kStride >= kPlaces + 6);

  // Place of a warp's first row, 8 before its first key.
  static __device__ __forceinline__ constexpr int warp_start(int warp) { return kOrigin - 8 - spread<kWidth>(16 * warp); }

  // Where a thread writes, in the row of its pair of rows; that row begins 2 (lane / 8) places late, which add() makes up for.
  static __device__ __forceinline__ int thread_start(int warp, int lane) {
    return (4 * warp + lane / 8) * kStride + 2 * (lane % 4) - (lane / 4 & 1) + warp_start(warp);
  }
  static __device__ __forceinline__ void put(float* to, const float (&ds)[kKeys / 2], int lane) {
    const bool odd = lane & 4, last = !odd && (lane & 3) == 3, first = odd && (lane & 3) == 0;
    const int partner = odd ? lane - (lane & 3 ? 5 : 1) : lane + 4;
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      float before = 0;
#pragma unroll
      for (int k = 0; k <= kRun + 1; ++k) {
        const int n = run * kRun + k;
        float x = 0, y = 0;
        if (k > 0 && k <= kRun) {
          x += ds[4 * (n - 1)];
          y += ds[4 * (n - 1) + 1];
        }
        if (k < kRun) {
          x += ds[4 * n + 2];
          y += ds[4 * n + 3];
        }
        x += __shfl_sync(0xffffffffu, last ? before : y, partner);
        before = y;
        float* at = to + 8 * k + run * 2 * kWidth;
        if (k <= kRun) {
          *at = x;
        } else {
          store_if(at, x, first);
        }
      }
    }
  }
  // The 16 rows' sums at places first + 2 lane + {0, 1}; warps whose places are elsewhere are left out.
  static __device__ __forceinline__ float2 add(const float* from, int first, int lane) {
    float2 a{0, 0}, b{0, 0};
    if (first + 2 * lane >= kPlaces) return a;
    from += first + 2 * lane;
#pragma unroll
    for (int warp = 0; warp < 4; ++warp) {
      const int begin = warp_start(warp) - 8, end = warp_start(warp) + 2 * kWidth * (kRuns - 1) + 8 * kRun + 8;
      if (first + 63 < begin || first >= end) continue;
      const auto row = [&](int r) { return *reinterpret_cast<const float2*>(from + (4 * warp + r) * kStride + 2 * r); };
      const float2 u = row(0), v = row(1), x = row(2), y = row(3);
      a.x += u.x + x.x;
      a.y += u.y + x.y;
      b.x += v.x + y.x;
      b.y += v.y + y.y;
    }
    return {a.x + b.x, a.y + b.y};
  }
};

// What one of the three adding warps does for a tile of queries: takes blocks of sums from `diagonals` (both groups) as they are filled,
// last keys first, and writes `to` (2 groups, count): every diagonal once. What it has of a diagonal that also crosses the next block is
// carried over.
template <int kWidth>
__device__ __forceinline__ void add_diagonals(const float* diagonals, Barrier* full, Barrier* free, int& parity, int warp, int blocks,
                                              float* to, int count) {
  using Sums = Diagonals<kWidth>;
  const int lane = threadIdx.x % 32;
  float2 carry[2][Sums::kChunksPerWarp] = {};
  for (int n = blocks - 1; n >= 0; --n, parity ^= 1) {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      full[group].wait(parity);
#pragma unroll
      for (int c = 0; c < Sums::kChunksPerWarp; ++c) {
        const int chunk = (warp + group) % 3 + 3 * c;  // of 64 places
        if (chunk >= Sums::kChunks) continue;
        const float* from = diagonals + group * Sums::kFloats;
        const float2 low = Sums::add(from, 64 * chunk, lane);
        wait_with_loads();
        const float2 high = Sums::add(from, 64 * chunk + Sums::kSpan, lane);
        float* at = to + group * count + n * Sums::kSpan + 64 * chunk + 2 * lane;
        *reinterpret_cast<float2*>(at + Sums::kSpan) = {carry[group][c].x + high.x, carry[group][c].y + high.y};
        if (n == 0) *reinterpret_cast<float2*>(at) = low;
        carry[group][c] = low;
        wait_with_loads();
      }
      __syncwarp();
      if (lane == 0) free[group].arrive();
    }
  }
}

}  // namespace heed::cuda
