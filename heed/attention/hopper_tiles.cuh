// What the Hopper attention kernels share: sizes, score terms as values, tiles of queries and of keys.
#pragma once

#include "heed/attention/hopper_case.h"
#include "heed/cuda/hopper.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {

inline constexpr float kLog2E = 1.44269504f, kLogE2 = 0.69314718f;

struct HopperSizes {
  int B, H, G, N, M;
  float beta, scale;       // scale: beta log2 e
  int section;             // heads whose keys and values fit the second cache together
  const int64_t* lengths;  // (B) or null

  __device__ __forceinline__ int keys(int b) const { return lengths ? static_cast<int>(clamp_index(lengths[b], 0, M)) : M; }
  __device__ __forceinline__ int heads_per_key_head() const { return H / G; }
};

// A term says how the kernels are put together:
//   kMask      keeps a pair only if j - i <= most_ahead; a block of queries from i0 on sees all keys before j1 if sees_all(i0, j1);
//              queries before i1 see no key from key_end(i1, keys) on; keys from j0 on are seen by no query before first_query(j0)
//   kFeatures  adds a product of 16 features of the query and 16 of the key to q k^T, and gets the sums of dS times the key's
//   kTable     is the initial value of q k^T, taken from a spread table (hopper_table.cuh); kWidth: columns of its grid, which all items
//              fill alike, 0 for none
struct HopperPlain {
  static constexpr bool kMask = false, kFeatures = false, kTable = false;
  static constexpr int kWidth = 0, most_ahead = 0;

  __device__ __forceinline__ bool sees_all(int, int) const { return true; }
  __device__ __forceinline__ int key_end(int, int keys) const { return keys; }
  __device__ __forceinline__ int first_query(int) const { return 0; }
};

struct HopperCausal : HopperPlain {
  static constexpr bool kMask = true;
  int most_ahead;

  __device__ __forceinline__ bool sees_all(int i0, int j1) const { return j1 - 1 - i0 <= most_ahead; }
  __device__ __forceinline__ int key_end(int i1, int keys) const { return min(i1 + most_ahead, keys); }
  __device__ __forceinline__ int first_query(int j0) const { return max(j0 - most_ahead, 0); }
};

struct HopperGaussian : HopperPlain {  // hopper_features.cuh
  static constexpr bool kFeatures = true;
  Gaussian2dArgs args;
  float middle_row, middle_column;  // of the grid of keys
};

template <int kColumns>
struct HopperTable : HopperPlain {
  static constexpr bool kTable = true;
  static constexpr int kWidth = kColumns;
  const float* spread;  // (H, 4, 2 reach)
  int reach;
};

// One of the tiles of a head, counted from the one with most work, where masks make a difference. Blocks start in the order of their
// numbers: heads are taken in sections, and within a section long tiles before short ones.
struct HeadTile {
  int head, from_longest;
};
__device__ __forceinline__ HeadTile masked_tile(int t, int tiles_per_head, int heads, int section) {
  const int s = t / (section * tiles_per_head), in_section = min(section, heads - s * section), rest = t - s * section * tiles_per_head;
  return {s * section + rest % in_section, rest / in_section};
}

// Queries [i0, i0 + kRows) of a head, against `blocks` blocks of keys, at least one; `keys` is how many the item has.
struct QueryTile {
  int i0, h, b, blocks, keys;
};
// kEveryBlock: blocks past the item's last key too.
template <int kRows, int kBlock, bool kEveryBlock, class Term>
__device__ __forceinline__ QueryTile query_tile(int t, const HopperSizes& z, const Term& term) {
  const int tiles = divide_up(z.N, kRows);
  QueryTile x;
  int head;
  if (Term::kMask) {
    const HeadTile place = masked_tile(t, tiles, z.B * z.H, z.section);
    head = place.head;
    x.i0 = (tiles - 1 - place.from_longest) * kRows;
  } else {
    head = t / tiles;
    x.i0 = t % tiles * kRows;
  }
  x.b = head / z.H;
  x.h = head % z.H;
  x.keys = Term::kWidth ? z.M : z.keys(x.b);
  const int end = kEveryBlock ? z.M : term.key_end(min(x.i0 + kRows, z.N), x.keys);
  x.blocks = max(divide_up(end, kBlock), 1);
  return x;
}

// Keys [j0, j0 + kRows) of key head g, against `blocks` blocks of queries, from the first one on, of each head that shares the keys.
struct KeyTile {
  int j0, g, b, first, blocks, keys;
};
template <int kRows, int kBlock, class Term>
__device__ __forceinline__ KeyTile key_tile(int t, const HopperSizes& z, const Term& term) {
  const int tiles = divide_up(z.M, kRows);
  KeyTile x;
  int head;
  if (Term::kMask) {
    const HeadTile place = masked_tile(t, tiles, z.B * z.G, z.section);
    head = place.head;
    x.j0 = place.from_longest * kRows;
  } else {
    head = t / tiles;
    x.j0 = t % tiles * kRows;
  }
  x.b = head / z.G;
  x.g = head % z.G;
  x.keys = Term::kWidth ? z.M : z.keys(x.b);
  const int all = divide_up(z.N, kBlock);
  x.first = min(term.first_query(x.j0) / kBlock, all - 1);
  x.blocks = x.j0 < x.keys ? all - x.first : 1;
  return x;
}

// The block's shared memory. Addresses in it are constants, which take no registers. Tiles with 128-byte swizzle begin at multiples of
// 1024 bytes.
__device__ __forceinline__ uint8_t* tile_memory() {
  extern __shared__ __align__(1024) uint8_t hopper_shared[];
  return hopper_shared;
}
inline constexpr int kMostShared = 232448;  // bytes of a block

// The same number, hidden from the optimizer: what depends on it is computed again instead of kept in registers.
__device__ __forceinline__ int recomputed(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// A thread's place in the sums of a warpgroup: its first row (the second is 8 further) and its first column of every 8.
struct SumPlace {
  int row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4, column = 2 * (threadIdx.x % 4);
};

}  // namespace heed::cuda
