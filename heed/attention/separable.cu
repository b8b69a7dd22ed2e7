// Separable attention on GPUs. Both maps are small matrices that meet long rows of values: a thread has one column of the values and eight
// rows of the result. The gradients of the maps are dot products of long rows: a warp has a few of them.
#include "heed/attention/separable_kernels.h"
#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

// A batch of products: to[m, n] = sum over members and k of map[m, k] from[k, n], n contiguous. Member i of product x is unit
// u = x members + i, with the map of head u / rows % heads and the values of batch u / shared.
struct MapProduct {
  const float *map, *from;
  float* to;
  int64_t M, K, N, products;
  int64_t map_head, map_m, map_k, from_batch, from_k, to_batch, to_m;  // strides
  int64_t heads, rows = 1, shared = 1, members = 1;
};

constexpr int kThreads = 128, kRows = 8, kDepth = 32;

__global__ void __launch_bounds__(kThreads) map_product_kernel(const MapProduct w, int64_t column_blocks, int64_t row_blocks) {
  __shared__ __align__(16) float map[kDepth][kRows];
  const int64_t n = blockIdx.x % column_blocks * kThreads + threadIdx.x, m0 = blockIdx.x / column_blocks % row_blocks * kRows,
                product = blockIdx.x / column_blocks / row_blocks;
  float sums[kRows] = {};
  for (int64_t unit = product * w.members; unit < (product + 1) * w.members; ++unit) {
    const float *from = w.from + unit / w.shared * w.from_batch + n, *of_head = w.map + unit / w.rows % w.heads * w.map_head;
    for (int64_t k0 = 0; k0 < w.K; k0 += kDepth) {
      const int depth = static_cast<int>(min(int64_t{kDepth}, w.K - k0));
      __syncthreads();
      for (int at = threadIdx.x; at < kDepth * kRows; at += kThreads) {
        const int k = at / kRows, m = at % kRows;
        map[k][m] = k < depth && m0 + m < w.M ? of_head[(m0 + m) * w.map_m + (k0 + k) * w.map_k] : 0.0f;
      }
      __syncthreads();
      if (n >= w.N) continue;
#pragma unroll 4
      for (int k = 0; k < depth; ++k) {
        const float x = from[(k0 + k) * w.from_k];
#pragma unroll
        for (int m = 0; m < kRows; ++m) sums[m] = fmaf(map[k][m], x, sums[m]);
      }
    }
  }
  if (n >= w.N) return;
#pragma unroll
  for (int m = 0; m < kRows; ++m)
    if (m0 + m < w.M) w.to[product * w.to_batch + (m0 + m) * w.to_m + n] = sums[m];
}

void multiply(const MapProduct& w) {
  if (w.products * w.M * w.N == 0) return;
  const int64_t column_blocks = divide_up<int64_t>(w.N, kThreads), row_blocks = divide_up<int64_t>(w.M, kRows);
  start(map_product_kernel, static_cast<unsigned>(column_blocks * row_blocks * w.products), kThreads, 0, w, column_blocks, row_blocks);
}

// to[slice, x, m, n] = sum over s and the columns e of the slice of a[x, m, s, e] b[x, n, s, e], e contiguous. b has a batch for every
// `shared` batches of a.
struct DotProduct {
  const float *a, *b;
  float* to;
  int64_t M, N, S, width, slice, slices, products;
  int64_t a_batch, a_m, a_s, b_batch, b_n, b_s;  // strides
  int64_t shared = 1;
};

constexpr int kSide = 4;  // a warp has 4 x 4 of them

__global__ void __launch_bounds__(kThreads) dot_product_kernel(const DotProduct w, int64_t row_blocks, int64_t column_blocks) {
  const int lane = threadIdx.x % 32;
  const int64_t task = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (task >= row_blocks * column_blocks * w.products * w.slices) return;
  const int64_t n0 = task % column_blocks * kSide, m0 = task / column_blocks % row_blocks * kSide,
                product = task / column_blocks / row_blocks % w.products, slice = task / column_blocks / row_blocks / w.products;
  const int64_t begin = slice * w.slice, end = min(w.width, begin + w.slice);
  const float *a[kSide], *b[kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {  // what is after the last one is read again and not stored
    a[i] = w.a + product * w.a_batch + min(m0 + i, w.M - 1) * w.a_m;
    b[i] = w.b + product / w.shared * w.b_batch + min(n0 + i, w.N - 1) * w.b_n;
  }
  float sums[kSide][kSide] = {};
  for (int64_t s = 0; s < w.S; ++s)
    for (int64_t e = begin + lane; e < end; e += 32) {
      float right[kSide];
#pragma unroll
      for (int j = 0; j < kSide; ++j) right[j] = b[j][s * w.b_s + e];
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const float left = a[i][s * w.a_s + e];
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] = fmaf(left, right[j], sums[i][j]);
      }
    }
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const float total = warp_sum(sums[i][j]);
      if (lane == 0 && m0 + i < w.M && n0 + j < w.N) w.to[((slice * w.products + product) * w.M + m0 + i) * w.N + n0 + j] = total;
    }
}

void multiply(const DotProduct& w) {
  const int64_t row_blocks = divide_up<int64_t>(w.M, kSide), column_blocks = divide_up<int64_t>(w.N, kSide),
                tasks = row_blocks * column_blocks * w.products * w.slices;
  if (tasks == 0) return;
  start(dot_product_kernel, static_cast<unsigned>(divide_up<int64_t>(tasks, kThreads / 32)), kThreads, 0, w, row_blocks, column_blocks);
}

// (B H, Y, C, width) = rows v
template <class Args>
MapProduct joined_rows(const Args& w, float* to) {
  const SeparableSizes& z = w.sizes;
  return {.map = w.rows,
          .from = w.v,
          .to = to,
          .M = z.Y,
          .K = z.R,
          .N = z.C * z.width,
          .products = z.B * z.H,
          .map_head = z.Y * z.R,
          .map_m = z.R,
          .map_k = 1,
          .from_batch = z.R * z.C * z.width,
          .from_k = z.C * z.width,
          .to_batch = z.Y * z.C * z.width,
          .to_m = z.C * z.width,
          .heads = z.H,
          .shared = z.H / z.G};
}

}  // namespace

void separable_forward(const SeparableForward& w) {
  const SeparableSizes& z = w.sizes;
  if (z.B * z.H * z.Y * z.X * z.width == 0) return;
  float* joined = static_cast<float*>(w.workspace);
  multiply(joined_rows(w, joined));
  multiply(MapProduct{.map = w.columns,
                      .from = joined,
                      .to = w.out,
                      .M = z.X,
                      .K = z.C,
                      .N = z.width,
                      .products = z.B * z.H * z.Y,
                      .map_head = z.X * z.C,
                      .map_m = z.C,
                      .map_k = 1,
                      .from_batch = z.C * z.width,
                      .from_k = z.width,
                      .to_batch = z.X * z.width,
                      .to_m = z.width,
                      .heads = z.H,
                      .rows = z.Y});
}

void separable_backward(const SeparableBackward& w) {
  const SeparableSizes& z = w.sizes;
  if (z.B * z.G == 0) return;
  float *joined = static_cast<float*>(w.workspace), *djoined = joined + z.joined_rows();
  multiply(joined_rows(w, joined));
  multiply(MapProduct{.map = w.columns,
                      .from = w.g,
                      .to = djoined,
                      .M = z.C,
                      .K = z.X,
                      .N = z.width,
                      .products = z.B * z.H * z.Y,
                      .map_head = z.X * z.C,
                      .map_m = 1,
                      .map_k = z.C,
                      .from_batch = z.X * z.width,
                      .from_k = z.width,
                      .to_batch = z.C * z.width,
                      .to_m = z.width,
                      .heads = z.H,
                      .rows = z.Y});
  multiply(DotProduct{.a = w.g,
                      .b = joined,
                      .to = w.dcolumns,
                      .M = z.X,
                      .N = z.C,
                      .S = z.Y,
                      .width = z.width,
                      .slice = z.slice(),
                      .slices = z.slices(),
                      .products = z.B * z.H,
                      .a_batch = z.Y * z.X * z.width,
                      .a_m = z.width,
                      .a_s = z.X * z.width,
                      .b_batch = z.Y * z.C * z.width,
                      .b_n = z.width,
                      .b_s = z.C * z.width});
  multiply(DotProduct{.a = djoined,
                      .b = w.v,
                      .to = w.drows,
                      .M = z.Y,
                      .N = z.R,
                      .S = z.C,
                      .width = z.width,
                      .slice = z.slice(),
                      .slices = z.slices(),
                      .products = z.B * z.H,
                      .a_batch = z.Y * z.C * z.width,
                      .a_m = z.C * z.width,
                      .a_s = z.width,
                      .b_batch = z.R * z.C * z.width,
                      .b_n = z.C * z.width,
                      .b_s = z.width,
                      .shared = z.H / z.G});
  multiply(MapProduct{.map = w.rows,
                      .from = djoined,
                      .to = w.dv,
                      .M = z.R,
                      .K = z.Y,
                      .N = z.C * z.width,
                      .products = z.B * z.G,
                      .map_head = z.Y * z.R,
                      .map_m = 1,
                      .map_k = z.R,
                      .from_batch = z.Y * z.C * z.width,
                      .from_k = z.C * z.width,
                      .to_batch = z.R * z.C * z.width,
                      .to_m = z.C * z.width,
                      .heads = z.H,
                      .members = z.H / z.G});
}

}  // namespace heed::cuda
