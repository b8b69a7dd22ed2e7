// Linear attention on GPUs: the arguments of a block, and its products of f32 tiles of 64 x 64.
#pragma once

#include "heed/attention/linear_attention_kernels.h"
#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {

inline constexpr int kSide = kCudaChunkTokens, kLinearThreads = 256, kDepth = 16;
// Denominators below the smallest normal float count as 0, as on the CPU, whose exponential has no subnormal results: the reciprocal of a
// subnormal number may be infinite.
inline constexpr float kLeastTotal = 0x1p-126f;

// A call as kernels see it. Names as in linear_attention_chunk.h; features of all tokens are stored.
struct LinearPlan {
  LinearAttentionArgs in;
  float *a = nullptr, *c = nullptr;  // features of queries (B H, N, R) and of keys (B G, M, R)
  const float *g = nullptr, *out = nullptr, *total = nullptr;
  float *new_out = nullptr, *new_total = nullptr, *dv = nullptr;
  float* sums = nullptr;                                  // (B G, query segments + 1, state): over the queries from each segment on
  float *gradient = nullptr, *delta = nullptr;            // of numerators (B H, N, E), of denominators (B H, N)
  float *da = nullptr, *dc = nullptr, *shares = nullptr;  // of features; sums of features times these, (B G, M)

  __device__ int64_t group() const { return in.sizes.H / in.sizes.G; }
  __device__ int64_t keys_of(int64_t head) const {
    const LinearAttentionSizes& z = in.sizes;
    return in.lengths ? max(int64_t{0}, min(in.lengths[head / z.G], z.M)) : z.M;
  }
  __device__ float* state_at(int64_t head, int64_t slot) const {
    return in.states + (head * (in.layout.keys.segments + 1) + slot) * in.layout.width_r * (in.layout.width_e + 1);
  }
  __device__ float* sum_at(int64_t head, int64_t slot) const {
    return sums + (head * (in.layout.queries.segments + 1) + slot) * in.layout.width_r * (in.layout.width_e + 1);
  }
  __device__ const float* last_column(const float* state) const { return state + in.layout.width_r * in.layout.width_e; }
  __device__ float top_after(int64_t head, int64_t keys) const {
    return in.largest_gain ? in.largest_gain[head * (in.sizes.M + 1) + min(keys, in.sizes.M)] : 0.0f;
  }
  __device__ float query_top(int64_t head, int64_t i) const { return top_after(head, in.sizes.causal ? i + 1 : in.sizes.M); }
  __device__ float gain(int64_t head, int64_t j) const { return in.gains ? in.gains[head * in.sizes.M + j] : 0.0f; }
  __device__ float rescale(float difference) const { return in.gains ? expf(fminf(difference, 0.0f)) : 1.0f; }
};

// Places of a block's tasks in a flat grid: (outer, inner).
struct FlatPlace {
  int64_t rest;
  __device__ explicit FlatPlace(int64_t index) : rest(index) {}
  __device__ int64_t take(int64_t count) {
    const int64_t index = rest % count;
    rest /= count;
    return index;
  }
};

struct alignas(16) ProductTiles {
  float a[kDepth][kSide + 4], b[kDepth][kSide + 4];
};
struct ChunkWeights {
  float values[kSide][kSide + 1];  // (queries, keys)
};

// A thread's 4 x 4 elements of a 64 x 64 tile.
using TileSums = float[4][4];
__device__ inline int own_row(int i) { return static_cast<int>(threadIdx.x) / 16 * 4 + i; }
__device__ inline int own_column(int j) { return static_cast<int>(threadIdx.x) % 16 * 4 + j; }
template <class Visit>
__device__ void for_own(TileSums& sums, int rows, int columns, const Visit& visit) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (own_row(i) < rows && own_column(j) < columns) visit(own_row(i), own_column(j), sums[i][j]);
}

// Which index of an operand is contiguous in memory: neighbouring threads read it.
enum class Order { by_depth, by_side };

// sums += a b for (rows x depth) (depth x columns), at most 64 rows and columns. a(m, k) and b(k, n) read elements.
template <Order a_order, Order b_order, class A, class B>
__device__ void add_product(TileSums& sums, ProductTiles& tiles, int rows, int columns, int64_t depth, const A& a, const B& b) {
  const int thread = threadIdx.x;
  for (int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kSide * kDepth / kLinearThreads; ++step) {
      const int at = thread + step * kLinearThreads;
      const int k = a_order == Order::by_depth ? at % kDepth : at / kSide, m = a_order == Order::by_depth ? at / kDepth : at % kSide;
      tiles.a[k][m] = m < rows && k0 + k < depth ? a(m, k0 + k) : 0.0f;
    }
#pragma unroll
    for (int step = 0; step < kSide * kDepth / kLinearThreads; ++step) {
      const int at = thread + step * kLinearThreads;
      const int k = b_order == Order::by_depth ? at % kDepth : at / kSide, n = b_order == Order::by_depth ? at / kDepth : at % kSide;
      tiles.b[k][n] = n < columns && k0 + k < depth ? b(k0 + k, n) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float4 x = *reinterpret_cast<const float4*>(&tiles.a[k][own_row(0)]),
                   y = *reinterpret_cast<const float4*>(&tiles.b[k][own_column(0)]);
      const float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
    }
  }
}

// The queries of head h and the keys of their key head in one chunk of a causal call.
struct Chunk {
  int64_t head, h, first;  // key head, query head, first token
  int rows, keys;          // tokens, and keys to be seen
};

// Weights of a chunk: (left_i right_j - less_i) e^(gain_j - top_i) for j <= i, else 0. Rows of left and right are `depth` long.
template <class Less>
__device__ void weigh_chunk(const LinearPlan& w, const Chunk& x, const float* left, const float* right, int64_t depth, const Less& less,
                            ProductTiles& tiles, ChunkWeights& weights) {
  TileSums sums = {};
  add_product<Order::by_depth, Order::by_depth>(
      sums, tiles, x.rows, x.keys, depth, [&](int m, int64_t k) { return left[m * depth + k]; },
      [&](int64_t k, int n) { return right[n * depth + k]; });
  __syncthreads();
  for_own(sums, kSide, kSide, [&](int i, int j, float value) {
    const bool seen = i < x.rows && j < x.keys && j <= i;
    weights.values[i][j] = seen ? (value - less(i)) * w.rescale(w.gain(x.head, x.first + j) - w.query_top(x.head, x.first + i)) : 0.0f;
  });
  __syncthreads();
}

// Sums of one segment into a state: to[r, e] = sum over rows of left[row, r] right[row, e] factor(row), and in the last column
// sum of left[row, r] weight(row) factor(row). A block has 64 x 64 of it; those of the first columns also have the last one.
template <class Left, class Right, class Factor, class Weight>
__device__ void sum_rows(const LinearPlan& w, float* to, int64_t r0, int64_t e0, int64_t depth, const Left& left, const Right& right,
                         const Factor& factor, const Weight& weight, ProductTiles& tiles) {
  const LinearAttentionSizes& z = w.in.sizes;
  const int rows = static_cast<int>(min(int64_t{kSide}, z.R - r0)), columns = static_cast<int>(min(int64_t{kSide}, z.E - e0));
  TileSums sums = {};
  add_product<Order::by_side, Order::by_side>(
      sums, tiles, rows, columns, depth, [&](int m, int64_t k) { return left(k)[r0 + m] * factor(k); },
      [&](int64_t k, int n) { return right(k)[e0 + n]; });
  for_own(sums, rows, columns, [&](int m, int n, float value) { to[(r0 + m) * w.in.layout.width_e + e0 + n] = value; });
  if (const int row = threadIdx.x; e0 == 0 && row < rows) {
    float last = 0;
    for (int64_t k = 0; k < depth; ++k) last = fmaf(left(k)[r0 + row] * factor(k), weight(k), last);
    to[w.in.layout.width_r * w.in.layout.width_e + r0 + row] = last;
  }
}

// (B G, segments, tiles of R, tiles of E). At least one tile of E, for the last column.
__host__ __device__ inline int64_t tiles_of(int64_t width) { return width == 0 ? 1 : (width + kSide - 1) / kSide; }

// A chunk of the queries of a head, and the tile of columns that a block has.
struct QueryPlace {
  Chunk x;
  int64_t column, slot;  // slot: of the state before the chunk
  float before;          // what that state is relative to

  __device__ QueryPlace(const LinearPlan& w, int64_t width) {
    const LinearAttentionSizes& z = w.in.sizes;
    FlatPlace place(blockIdx.x);
    column = place.take(tiles_of(width)) * kSide;
    x.first = place.take((z.N + kSide - 1) / kSide) * kSide;
    x.h = place.rest;
    x.head = x.h / w.group();
    x.rows = static_cast<int>(min(int64_t{kSide}, z.N - x.first));
    x.keys = z.causal ? static_cast<int>(max(int64_t{0}, min(w.keys_of(x.head) - x.first, int64_t{x.rows}))) : 0;
    slot = z.causal ? x.first / kSide : w.in.layout.keys.segments;
    before = w.top_after(x.head, z.causal ? x.first : z.M);
  }
};

template <class... Parameters, class... Arguments>
void start_tasks(void (*kernel)(Parameters...), int64_t tasks, Arguments... arguments) {
  if (tasks > 0) start(kernel, static_cast<unsigned>(tasks), kLinearThreads, 0, arguments...);
}

}  // namespace heed::cuda
