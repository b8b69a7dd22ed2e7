// A stable radix sort of positions by key, 8 bits at a time: count the digits of every tile, add the counts up, move every tile's positions
// to their places. The order is a function of the keys alone.
#pragma once

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {

constexpr int kSortTile = 2048, kSortThreads = 256, kDigits = 256, kSortWarps = kSortThreads / 32, kSortSteps = kSortTile / kSortThreads;
constexpr int kSortAtOnce = 2048;  // so many are sorted by counting smaller ones

// Keys and positions; before the first pass, indices in their order. An index outside [0, size) has the key `size`: it comes last.
struct SortSource {
  const int64_t* index;
  int64_t size;
  const uint32_t *keys, *positions;

  __device__ uint32_t key(int64_t i) const {
    if (!index) return keys[i];
    const int64_t value = index[i];
    return static_cast<uint32_t>(value >= 0 && value < size ? value : size);
  }
  __device__ uint32_t position(int64_t i) const { return index ? static_cast<uint32_t>(i) : positions[i]; }
};

// A key's place is the number of smaller ones and of equal ones before it.
static __global__ void sort_at_once(SortSource source, int rows, uint32_t* keys, uint32_t* positions) {
  __shared__ uint32_t all[kSortAtOnce];
  for (int i = threadIdx.x; i < rows; i += blockDim.x) all[i] = source.key(i);
  __syncthreads();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= rows) return;
  const uint32_t mine = all[i];
  int place = 0;
#pragma unroll 8
  for (int k = 0; k < rows; ++k) place += all[k] < mine + (k < i ? 1 : 0);
  keys[place] = mine;
  positions[place] = static_cast<uint32_t>(i);
}

// counts: (digits, tiles)
static __global__ void count_digits(SortSource source, int64_t rows, int shift, uint32_t* counts) {
  __shared__ uint32_t mine[kDigits];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = int64_t{blockIdx.x} * kSortTile;
  for (int64_t i = first + threadIdx.x; i < first + kSortTile && i < rows; i += kSortThreads)
    atomicAdd(&mine[source.key(i) >> shift & (kDigits - 1)], 1u);
  __syncthreads();
  counts[int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

// counts: (count), a multiple of the block's threads (32 warps), becomes the sums of all before.
static __global__ void add_up_counts(uint32_t* counts, int64_t count) {
  __shared__ uint32_t of_warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t before = 0;
  for (int64_t i = threadIdx.x; i - threadIdx.x < count; i += blockDim.x) {
    const uint32_t own = i < count ? counts[i] : 0;
    uint32_t sum = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(kFullWarp, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    uint32_t total = 0;
    for (int w = 0; w < 32; ++w) {
      if (w < warp) sum += of_warps[w];
      total += of_warps[w];
    }
    if (i < count) counts[i] = before + sum - own;
    before += total;
    __syncthreads();
  }
}

// starts: (digits, tiles). A warp takes its part of the tile 32 positions at a time.
static __global__ void move_by_digit(SortSource source, int64_t rows, int shift, const uint32_t* starts, uint32_t* keys,
                                     uint32_t* positions) {
  __shared__ uint32_t next[kSortWarps][kDigits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int w = 0; w < kSortWarps; ++w) next[w][threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = int64_t{blockIdx.x} * kSortTile + warp * (kSortTile / kSortWarps) + lane;
  uint32_t key[kSortSteps], position[kSortSteps];
#pragma unroll
  for (int step = 0; step < kSortSteps; ++step) {
    const int64_t i = first + step * 32;
    key[step] = i < rows ? source.key(i) : 0;
    position[step] = i < rows ? source.position(i) : 0;
  }
  const auto digit = [&](int step) { return first + step * 32 < rows ? static_cast<int>(key[step] >> shift & (kDigits - 1)) : kDigits; };
#pragma unroll
  for (int step = 0; step < kSortSteps; ++step) {
    const int mine = digit(step);
    const unsigned alike = __match_any_sync(kFullWarp, mine);
    if (mine < kDigits && lane == __ffs(static_cast<int>(alike)) - 1) next[warp][mine] += __popc(alike);
    __syncwarp();
  }
  __syncthreads();
  uint32_t start = starts[int64_t{threadIdx.x} * gridDim.x + blockIdx.x];
  for (int w = 0; w < kSortWarps; ++w) {
    const uint32_t count = next[w][threadIdx.x];
    next[w][threadIdx.x] = start;
    start += count;
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < kSortSteps; ++step) {
    const int mine = digit(step);
    const unsigned alike = __match_any_sync(kFullWarp, mine), before = alike & ((1u << lane) - 1);
    const uint32_t base = mine < kDigits ? next[warp][mine] : 0;
    __syncwarp();
    if (mine < kDigits) {
      if (before == 0) next[warp][mine] = base + __popc(alike);
      keys[base + __popc(before)] = key[step];
      positions[base + __popc(before)] = position[step];
    }
    __syncwarp();
  }
}

struct SortedPositions {
  const uint32_t *keys, *positions;  // (rows)
};

// Sorts the positions of `index` (rows). storage: (2, rows) keys, (2, rows) positions, (256, tiles of 2048) counts
inline SortedPositions sorted_positions(const int64_t* index, int64_t rows, int64_t size, uint32_t* storage) {
  check(rows <= INT32_MAX && size < UINT32_MAX, "index: ", rows, " positions in ", size, " rows are too many to sort");
  uint32_t* const keys[2] = {storage, storage + rows};
  uint32_t* const positions[2] = {storage + 2 * rows, storage + 3 * rows};
  uint32_t* const counts = storage + 4 * rows;
  SortSource source{.index = index, .size = size, .keys = nullptr, .positions = nullptr};
  if (rows <= kSortAtOnce) {
    start(sort_at_once, static_cast<unsigned>(divide_up<int64_t>(rows, 256)), 256, 0, source, rows, keys[0], positions[0]);
    return {keys[0], positions[0]};
  }
  const int64_t tiles = divide_up<int64_t>(rows, kSortTile);
  int to = 0;
  for (int shift = 0; size >> shift > 0; shift += 8, to = 1 - to) {
    start(count_digits, static_cast<unsigned>(tiles), kSortThreads, 0, source, rows, shift, counts);
    start(add_up_counts, 1, 1024, 0, counts, tiles * kDigits);
    start(move_by_digit, static_cast<unsigned>(tiles), kSortThreads, 0, source, rows, shift, counts, keys[to], positions[to]);
    source = {.index = nullptr, .size = size, .keys = keys[to], .positions = positions[to]};
  }
  return {source.keys, source.positions};
}

}  // namespace heed::cuda
