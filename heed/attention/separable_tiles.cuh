// Separable attention in bf16 on grids of up to 16 x 16, with tensor cores (mma.sync). A block has 32 value columns of one key head: every
// token of the grid is 64 bytes. All products have 16 x 16 maps as left operand, in registers; values, their gradient and the results stay
// in registers, too, and what one product hands to the next goes through shared memory.
//
// Four fragments of 8 columns are stored so that lane l writes its pairs of columns as one piece of 16 bytes, piece l % 4. So columns are
// permuted in shared memory: word w of piece p has columns 8 w + 2 p and the next. The permutation is its own inverse: a product that reads
// such pieces as fragments leaves lane l with the eight columns from 8 (l % 4) on, which it writes as 16 bytes.
#pragma once

#include "heed/attention/separable_kernels.h"
#include "heed/attention/tile_copies.cuh"
#include "heed/cuda/element.cuh"
#include "heed/cuda/launch.cuh"
#include "heed/cuda/mma.cuh"

namespace heed::cuda::separable_tiles {

constexpr int kSide = static_cast<int>(SeparableTiles::kSide), kColumns = static_cast<int>(SeparableTiles::kColumns);
constexpr int kWarps = 8, kThreads = kWarps * 32, kShare = kSide / kWarps;  // a warp has every 8th row and column of the grid

// 16 x 16 tokens in shared memory. The pieces of a token are swizzled: pieces with the same number of eight inner tokens are in different
// banks, and so do the pieces of two outer tokens.
struct Tile {
  static constexpr int kOuter = kSide * 64 + 64, kBytes = kSide * kOuter;
  char* memory;

  __device__ uint4* at(int outer, int inner, int piece) const {
    return reinterpret_cast<uint4*>(memory + outer * kOuter + inner * 64 + (piece ^ (inner / 2 % 4)) * 16);
  }
};

using Fragment = uint32_t[4];                                                        // 16 x 16, left operand
using Slab = uint32_t[4][2];                                                         // 16 x 32, right operand: four times 8 columns
using Sums = float[4][4];                                                            // 16 x 32
constexpr int kMapRows = 0, kMapColumns = 1, kMapColumnsBack = 2, kMapRowsBack = 3;  // kinds of maps; Back: transposed

// maps: (H, 4, 32) uint4
__device__ __forceinline__ void load_map(Fragment& a, const uint4* maps, int64_t head, int kind, int lane) {
  const uint4 x = maps[(head * 4 + kind) * 32 + lane];
  a[0] = x.x, a[1] = x.y, a[2] = x.z, a[3] = x.w;
}

// The inner tokens of one outer one as k.
__device__ __forceinline__ void load_slab(Slab& b, const Tile& tile, int outer, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    Fragment words;
    load_transposed_matrices(words, tile.at(outer, lane % 16, 2 * half + lane / 16));
    b[2 * half][0] = words[0], b[2 * half][1] = words[1];
    b[2 * half + 1][0] = words[2], b[2 * half + 1][1] = words[3];
  }
}

__device__ __forceinline__ void multiply_slab(Sums& c, const Fragment& a, const Slab& b) {
#pragma unroll
  for (int p = 0; p < 4; ++p) multiply_add(c[p], a, b[p][0], b[p][1]);
}

__device__ __forceinline__ uint32_t rounded_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
// Row l / 4 (half 0) or l / 4 + 8 of the sums.
__device__ __forceinline__ uint4 rounded_row(const Sums& c, int half) {
  return make_uint4(rounded_pair(c[0][2 * half], c[0][2 * half + 1]), rounded_pair(c[1][2 * half], c[1][2 * half + 1]),
                    rounded_pair(c[2][2 * half], c[2][2 * half + 1]), rounded_pair(c[3][2 * half], c[3][2 * half + 1]));
}

// One token of 16 x 16, of which only some exist.
struct Grid {
  int rows, columns;
  __device__ bool has(int row, int column) const { return row < rows && column < columns; }
  __device__ int64_t token(int row, int column) const { return int64_t{row} * columns + column; }
};

// out. One barrier per head: products with columns of one head run beside those with rows of the next.
__global__ void __launch_bounds__(kThreads, 3) forward_kernel(const SeparableForward w, const uint4* maps, int slices) {
  __shared__ __align__(128) char memory[2 * Tile::kBytes];
  const SeparableSizes& z = w.sizes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = static_cast<int>(z.H / z.G);
  const int64_t b = blockIdx.x / slices / z.G, g = blockIdx.x / slices % z.G;
  const int first = static_cast<int>(blockIdx.x % slices) * kColumns, own = first + lane % 4 * 8;  // columns
  const Grid from{static_cast<int>(z.R), static_cast<int>(z.C)}, to{static_cast<int>(z.Y), static_cast<int>(z.X)};

  const Tile values{memory + Tile::kBytes};  // outer: columns, inner: rows; until the second head
  for (int at = threadIdx.x; at < kSide * kSide * 4; at += kThreads) {
    const int row = at / (4 * kSide), column = at / 4 % kSide, piece = at % 4;
    const bool there = from.has(row, column) && first + 8 * piece < z.E;
    const Bf16* const source = there ? w.v.at<const Bf16>(b, g, from.token(row, column)) + first + 8 * piece : w.v.at<const Bf16>(0, 0, 0);
    copy_16(values.at(column, row, piece), source, there ? 16 : 0);
  }
  end_group();
  wait_for_copies();
  __syncthreads();
  Slab v[kShare];
#pragma unroll
  for (int i = 0; i < kShare; ++i) load_slab(v[i], values, warp + i * kWarps, lane);

  for (int member = 0; member < group; ++member) {
    const int64_t h = g * group + member;
    const Tile joined{memory + member % 2 * Tile::kBytes};  // outer: rows y, inner: columns c
    Fragment map;
    load_map(map, maps, h, kMapRows, lane);
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      Sums sums = {};
      multiply_slab(sums, map, v[i]);
      *joined.at(lane / 4, warp + i * kWarps, lane % 4) = rounded_row(sums, 0);
      *joined.at(lane / 4 + 8, warp + i * kWarps, lane % 4) = rounded_row(sums, 1);
    }
    load_map(map, maps, h, kMapColumns, lane);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      const int y = warp + i * kWarps;
      if (y >= to.rows) continue;
      Slab t;
      load_slab(t, joined, y, lane);
      Sums sums = {};
      multiply_slab(sums, map, t);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int x = lane / 4 + 8 * half;
        if (x < to.columns && own < z.E) *reinterpret_cast<uint4*>(w.out.at<Bf16>(b, h, to.token(y, x)) + own) = rounded_row(sums, half);
      }
    }
  }
}

// Products over columns, of 16 x 16 sums: c[n] has columns 8 n to 8 n + 7.
using MapSums = float[2][4];

// dv, and the gradients of the maps summed over columns of the slice and `items` items. With t = rows v and dt = (columns)^T g:
//   dcolumns[x, c] = sum over y of g[y, x] t[y, c]    drows[y, r] = sum over c of dt[y, c] v[r, c]    dv[., c] += rows^T dt[., c]
// Warps copy what they alone read, values and gradients, two copies at a time.
__global__ void __launch_bounds__(kThreads, 2) backward_kernel(const SeparableBackward w, const uint4* maps, int slices, int items) {
  extern __shared__ __align__(128) char memory[];
  constexpr int kEntries = 512;                                            // of both maps, in the order of fragments
  const Tile joined{memory}, djoined{memory + Tile::kBytes};               // outer y, inner c; outer c, inner y
  char* const ring = memory + 2 * Tile::kBytes;                            // two tiles
  float* const found = reinterpret_cast<float*>(ring + 2 * Tile::kBytes);  // (kWarps, kEntries)

  const SeparableSizes& z = w.sizes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = static_cast<int>(z.H / z.G), block = static_cast<int>(blockIdx.x);
  const int slice = block % slices, g = block / slices % static_cast<int>(z.G), chunk = block / slices / static_cast<int>(z.G);
  const int first_item = chunk * items, end_item = min(static_cast<int>(z.B), first_item + items);
  const int own = slice * kColumns + lane % 4 * 8;  // the first of eight columns
  const Grid from{static_cast<int>(z.R), static_cast<int>(z.C)}, to{static_cast<int>(z.Y), static_cast<int>(z.X)};

  // Starts copying what a step of an item reads: step 0 its values as outer c, inner r, step n the gradient of head n - 1 as outer y, inner
  // x.
  const auto start_copy = [&](int item, int step, int buffer) {
    const Tile tile{ring + buffer * Tile::kBytes};
#pragma unroll
    for (int i = 0; i < kShare * 2; ++i) {  // 16 inner tokens are two pieces of every lane
      const int outer = warp + i / 2 * kWarps, inner = lane / 4 + i % 2 * 8;
      const bool there = item < end_item && own < z.E && (step == 0 ? from.has(inner, outer) : to.has(outer, inner));
      const Bf16* source = w.v.at<const Bf16>(0, 0, 0);
      if (there)
        source = (step == 0 ? w.v.at<const Bf16>(item, g, from.token(inner, outer))
                            : w.g.at<const Bf16>(item, g * group + step - 1, to.token(outer, inner))) +
                 own;
      copy_16(tile.at(outer, inner, lane % 4), source, there ? 16 : 0);
    }
    end_group();
  };

  const auto keep_found = [&](const MapSums& sums, int number) {
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) found[warp * kEntries + (number + 4 * n + j) * 32 + lane] = sums[n][j];
  };
  // Adds what the warps have found for a head of an item to the sums of the block.
  const auto add_found = [&](int item, int h) {
#pragma unroll 1
    for (int entry = threadIdx.x; entry < kEntries; entry += kThreads) {
      float total = 0;
#pragma unroll 4
      for (int other = 0; other < kWarps; ++other) total += found[other * kEntries + entry];
      const int of = entry % 32, number = entry / 32;  // lane, and place in its sums: map, half of the columns, register
      const int row = of / 4 + number % 4 / 2 * 8, column = number / 4 % 2 * 8 + of % 4 * 2 + number % 2;
      const bool is_rows = number >= 8;
      if (row >= (is_rows ? z.Y : z.X) || column >= (is_rows ? z.R : z.C)) continue;
      const int64_t map = (int64_t{chunk} * slices + slice) * z.H + h;
      float* const sum = is_rows ? w.drows + (map * z.Y + row) * z.R + column : w.dcolumns + (map * z.X + row) * z.C + column;
      *sum = item == first_item ? total : *sum + total;
    }
  };

  Slab v[kShare] = {};           // of the columns c of this warp, k = r
  uint4 v_rows[kShare][2] = {};  // the same, k = value columns
  Sums dv[kShare] = {};
  int buffer = 0;
  start_copy(first_item, 0, 0);
  for (int item = first_item, step = 0; item < end_item; step == group ? (step = 0, ++item) : ++step, buffer ^= 1) {
    __syncwarp();
    step == group ? start_copy(item + 1, 0, buffer ^ 1) : start_copy(item, step + 1, buffer ^ 1);
    wait_for_copies<1>();
    __syncwarp();
    const Tile tile{ring + buffer * Tile::kBytes};
    if (step == 0) {
#pragma unroll
      for (int i = 0; i < kShare; ++i) {
        load_slab(v[i], tile, warp + i * kWarps, lane);
#pragma unroll
        for (int n = 0; n < 2; ++n) v_rows[i][n] = *tile.at(warp + i * kWarps, 8 * n + lane / 4, lane % 4);
#pragma unroll
        for (int p = 0; p < 4; ++p)
#pragma unroll
          for (int j = 0; j < 4; ++j) dv[i][p][j] = 0;
      }
      continue;
    }

    const int h = g * group + step - 1;
    Fragment map;
    load_map(map, maps, h, kMapColumnsBack, lane);
#pragma unroll 1
    for (int i = 0; i < kShare; ++i) {
      Slab gradient;
      load_slab(gradient, tile, warp + i * kWarps, lane);
      Sums sums = {};
      multiply_slab(sums, map, gradient);
      *djoined.at(lane / 4, warp + i * kWarps, lane % 4) = rounded_row(sums, 0);
      *djoined.at(lane / 4 + 8, warp + i * kWarps, lane % 4) = rounded_row(sums, 1);
    }
    load_map(map, maps, h, kMapRows, lane);
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      Sums sums = {};
      multiply_slab(sums, map, v[i]);
      *joined.at(lane / 4, warp + i * kWarps, lane % 4) = rounded_row(sums, 0);
      *joined.at(lane / 4 + 8, warp + i * kWarps, lane % 4) = rounded_row(sums, 1);
    }
    if (step > 1)
      add_found(item, h - 1);
    else if (item > first_item)
      add_found(item - 1, h + group - 1);
    __syncthreads();

    MapSums dcolumns = {};
#pragma unroll 1
    for (int i = 0; i < kShare; ++i) {
      const int outer = warp + i * kWarps;
      const uint4 top = *tile.at(outer, lane / 4, lane % 4), bottom = *tile.at(outer, lane / 4 + 8, lane % 4);
      const uint32_t tops[4] = {top.x, top.y, top.z, top.w}, bottoms[4] = {bottom.x, bottom.y, bottom.z, bottom.w};
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const Fragment left = {tops[2 * k], bottoms[2 * k], tops[2 * k + 1], bottoms[2 * k + 1]};
        Fragment right;
        load_matrices(right, joined.at(outer, lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
        multiply_add(dcolumns[0], left, right[0], right[1]);
        multiply_add(dcolumns[1], left, right[2], right[3]);
      }
    }
    keep_found(dcolumns, 0);
    MapSums drows = {};
    load_map(map, maps, h, kMapRowsBack, lane);
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      const int outer = warp + i * kWarps;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        Fragment left;
        load_matrices(left, djoined.at(outer, lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const uint4 x = v_rows[i][n];
          multiply_add(drows[n], left, k == 0 ? x.x : x.z, k == 0 ? x.y : x.w);
        }
      }
      Slab right;
      load_slab(right, djoined, outer, lane);
      multiply_slab(dv[i], map, right);
    }
    keep_found(drows, 8);
    __syncthreads();

    if (step < group) continue;
#pragma unroll
    for (int i = 0; i < kShare; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = lane / 4 + 8 * half, column = warp + i * kWarps;
        if (from.has(row, column) && own < z.E)
          *reinterpret_cast<uint4*>(w.dv.at<Bf16>(item, g, from.token(row, column)) + own) = rounded_row(dv[i], half);
      }
  }
  wait_for_copies();
  add_found(end_item - 1, g * group + group - 1);
}

// The maps as left operands. maps: (H, 4, 32) uint4; a block has a head, a warp one kind.
__global__ void __launch_bounds__(128) pack_maps_kernel(const SeparableSizes z, const float* rows, const float* columns, uint4* maps) {
  const int kind = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t h = blockIdx.x;
  const bool is_rows = kind == kMapRows || kind == kMapRowsBack, back = kind >= kMapColumnsBack;
  const int64_t M = is_rows ? z.Y : z.X, K = is_rows ? z.R : z.C;
  const float* const map = (is_rows ? rows : columns) + h * M * K;
  const auto at = [&](int row, int column) {
    const int m = back ? column : row, k = back ? row : column;
    return m < M && k < K ? map[m * K + k] : 0.0f;
  };
  const auto pair = [&](int row, int column) { return rounded_pair(at(row, column), at(row, column + 1)); };
  const int row = lane / 4, column = lane % 4 * 2;
  maps[(h * 4 + kind) * 32 + lane] = make_uint4(pair(row, column), pair(row + 8, column), pair(row, column + 8), pair(row + 8, column + 8));
}

inline void pack_maps(const SeparableSizes& z, const float* rows, const float* columns, void* maps) {
  start(pack_maps_kernel, static_cast<unsigned>(z.H), 128, 0, z, rows, columns, static_cast<uint4*>(maps));
}

inline void forward(const SeparableForward& w) {
  const SeparableSizes& z = w.sizes;
  const int64_t slices = SeparableTiles::slices(z);
  pack_maps(z, w.rows, w.columns, w.workspace);
  start(forward_kernel, static_cast<unsigned>(z.B * z.G * slices), kThreads, 0, w, static_cast<const uint4*>(w.workspace),
        static_cast<int>(slices));
}

inline void backward(const SeparableBackward& w) {
  const SeparableSizes& z = w.sizes;
  const int64_t slices = SeparableTiles::slices(z), items = SeparableTiles::items(z);
  constexpr size_t shared = 4 * Tile::kBytes + kWarps * 512 * sizeof(float);
  pack_maps(z, w.rows, w.columns, w.workspace);
  start(backward_kernel, static_cast<unsigned>(slices * z.G * divide_up(z.B, items)), kThreads, shared, w,
        static_cast<const uint4*>(w.workspace), static_cast<int>(slices), static_cast<int>(items));
}

}  // namespace heed::cuda::separable_tiles
