// Separable attention on GPUs, for any sizes; small grids in bf16 use separable_tiles.cuh. Both maps are small matrices, multiplied with
// long rows of values: a thread has one column of the values and eight rows of the result. The gradients of the maps are dot products of
// long rows: a warp has a few of them.
#include "heed/attention/separable_kernels.h"
#include "heed/attention/separable_tiles.cuh"
#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/element.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

// Where matrix number p is that belongs to item p / (heads parts), head p / parts % heads and one of `parts` rows of a grid.
struct Place {
  int64_t heads, parts, item, head, part;

  __device__ int64_t of(int64_t p) const { return p / (heads * parts) * item + p / parts % heads * head + p % parts * part; }
};

// A matrix of each of them: row i begins `row` elements after row i - 1. Columns are tokens of `width` numbers, `token` apart.
template <class T>
struct Matrices {
  T* data;
  Place place;
  int64_t row, token;

  __device__ int64_t column(int64_t n, int64_t width) const { return n / width * token + n % width; }
};

// to[m, n] = sum over members and k of map[m, k] from[k, n]. Member i of product x is unit u = x members + i, with the map of head
// u / rows % heads and the values number u / shared.
template <class From, class To>
struct MapProduct {
  const float* map;
  Matrices<const From> from;
  Matrices<To> to;
  int64_t M, K, N, width, products;
  int64_t map_head, map_m, map_k;  // strides
  int64_t heads, rows = 1, shared = 1, members = 1;
};

constexpr int kThreads = 128, kRows = 8, kDepth = 32;

template <class From, class To>
__global__ void __launch_bounds__(kThreads) map_product_kernel(const MapProduct<From, To> w, int64_t column_blocks, int64_t row_blocks) {
  __shared__ __align__(16) float map[kDepth][kRows];
  const int64_t n = blockIdx.x % column_blocks * kThreads + threadIdx.x, m0 = blockIdx.x / column_blocks % row_blocks * kRows,
                product = blockIdx.x / column_blocks / row_blocks;
  const int64_t from_column = w.from.column(n, w.width);
  float sums[kRows] = {};
  for (int64_t unit = product * w.members; unit < (product + 1) * w.members; ++unit) {
    const From* from = w.from.data + w.from.place.of(unit / w.shared) + from_column;
    const float* of_head = w.map + unit / w.rows % w.heads * w.map_head;
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
        const float x = load(from + (k0 + k) * w.from.row);
#pragma unroll
        for (int m = 0; m < kRows; ++m) sums[m] = fmaf(map[k][m], x, sums[m]);
      }
    }
  }
  if (n >= w.N) return;
  To* const to = w.to.data + w.to.place.of(product) + w.to.column(n, w.width);
#pragma unroll
  for (int m = 0; m < kRows; ++m)
    if (m0 + m < w.M) store(to + (m0 + m) * w.to.row, sums[m]);
}

template <class From, class To>
void multiply(const MapProduct<From, To>& w) {
  if (w.products * w.M * w.N == 0) return;
  const int64_t column_blocks = divide_up<int64_t>(w.N, kThreads), row_blocks = divide_up<int64_t>(w.M, kRows);
  start(map_product_kernel<From, To>, static_cast<unsigned>(column_blocks * row_blocks * w.products), kThreads, 0, w, column_blocks,
        row_blocks);
}

// to[slice, x, m, n] = sum over s and the columns e of the slice of a[x, m, s, e] b[x, n, s, e], e contiguous. b has a matrix for every
// `shared` matrices of a.
template <class A, class B>
struct DotProduct {
  const A* a;
  const B* b;
  float* to;
  int64_t M, N, S, width, slice, slices, products;
  Place a_place, b_place;
  int64_t a_m, a_s, b_n, b_s;  // strides
  int64_t shared = 1;
};

constexpr int kSide = 4;  // a warp has 4 x 4 of them

template <class A, class B>
__global__ void __launch_bounds__(kThreads) dot_product_kernel(const DotProduct<A, B> w, int64_t row_blocks, int64_t column_blocks) {
  const int lane = threadIdx.x % 32;
  const int64_t task = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (task >= row_blocks * column_blocks * w.products * w.slices) return;
  const int64_t n0 = task % column_blocks * kSide, m0 = task / column_blocks % row_blocks * kSide,
                product = task / column_blocks / row_blocks % w.products, slice = task / column_blocks / row_blocks / w.products;
  const int64_t begin = slice * w.slice, end = min(w.width, begin + w.slice);
  const A* a[kSide];
  const B* b[kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {  // what is after the last one is read again and not stored
    a[i] = w.a + w.a_place.of(product) + min(m0 + i, w.M - 1) * w.a_m;
    b[i] = w.b + w.b_place.of(product / w.shared) + min(n0 + i, w.N - 1) * w.b_n;
  }
  float sums[kSide][kSide] = {};
  for (int64_t s = 0; s < w.S; ++s)
    for (int64_t e = begin + lane; e < end; e += 32) {
      float right[kSide];
#pragma unroll
      for (int j = 0; j < kSide; ++j) right[j] = load(b[j] + s * w.b_s + e);
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const float left = load(a[i] + s * w.a_s + e);
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

template <class A, class B>
void multiply(const DotProduct<A, B>& w) {
  const int64_t row_blocks = divide_up<int64_t>(w.M, kSide), column_blocks = divide_up<int64_t>(w.N, kSide),
                tasks = row_blocks * column_blocks * w.products * w.slices;
  if (tasks == 0) return;
  start(dot_product_kernel<A, B>, static_cast<unsigned>(divide_up<int64_t>(tasks, kThreads / 32)), kThreads, 0, w, row_blocks,
        column_blocks);
}

Place place(const TokenRows& x, int64_t heads, int64_t parts = 1, int64_t tokens = 0) {
  return {.heads = heads, .parts = parts, .item = x.item, .head = x.head, .part = tokens * x.token};
}
// The grid row by row, of values or of their gradient: (R, C width).
template <class T>
Matrices<T> by_rows(const SeparableSizes& z, const TokenRows& x) {
  return {.data = static_cast<T*>(x.data), .place = place(x, z.G), .row = z.C * x.token, .token = x.token};
}
// One row of the grid, of results or of their gradient: (X, width) of (B, H, Y).
template <class T>
Matrices<T> by_columns(const SeparableSizes& z, const TokenRows& x) {
  return {.data = static_cast<T*>(x.data), .place = place(x, z.H, z.Y, z.X), .row = x.token, .token = x.token};
}
// Values joined by rows, (B H, Y, C, width), or their gradient, as (Y, C width) and as (C, width).
template <class T>
Matrices<T> joined_by_rows(const SeparableSizes& z, T* joined) {
  const int64_t row = z.C * z.width;
  return {.data = joined, .place = {.heads = 1, .parts = 1, .item = z.Y * row, .head = 0, .part = 0}, .row = row, .token = z.width};
}
template <class T>
Matrices<T> joined_by_columns(const SeparableSizes& z, T* joined) {
  return {.data = joined, .place = {.heads = 1, .parts = 1, .item = z.C * z.width, .head = 0, .part = 0}, .row = z.width, .token = z.width};
}

// joined = rows v
template <class T, class Args>
void join_rows(const Args& w, float* joined) {
  const SeparableSizes& z = w.sizes;
  multiply(MapProduct<T, float>{.map = w.rows,
                                .from = by_rows<const T>(z, w.v),
                                .to = joined_by_rows(z, joined),
                                .M = z.Y,
                                .K = z.R,
                                .N = z.C * z.width,
                                .width = z.width,
                                .products = z.B * z.H,
                                .map_head = z.Y * z.R,
                                .map_m = z.R,
                                .map_k = 1,
                                .heads = z.H,
                                .shared = z.H / z.G});
}

template <class T>
void forward(const SeparableForward& w) {
  const SeparableSizes& z = w.sizes;
  float* const joined = static_cast<float*>(w.workspace);
  join_rows<T>(w, joined);
  multiply(MapProduct<float, T>{.map = w.columns,
                                .from = joined_by_columns<const float>(z, joined),
                                .to = by_columns<T>(z, w.out),
                                .M = z.X,
                                .K = z.C,
                                .N = z.width,
                                .width = z.width,
                                .products = z.B * z.H * z.Y,
                                .map_head = z.X * z.C,
                                .map_m = z.C,
                                .map_k = 1,
                                .heads = z.H,
                                .rows = z.Y});
}

template <class T>
void backward(const SeparableBackward& w) {
  const SeparableSizes& z = w.sizes;
  float *const joined = static_cast<float*>(w.workspace), *const djoined = joined + z.joined_rows();
  const int64_t joined_item = z.Y * z.C * z.width;
  join_rows<T>(w, joined);
  multiply(MapProduct<T, float>{.map = w.columns,
                                .from = by_columns<const T>(z, w.g),
                                .to = joined_by_columns(z, djoined),
                                .M = z.C,
                                .K = z.X,
                                .N = z.width,
                                .width = z.width,
                                .products = z.B * z.H * z.Y,
                                .map_head = z.X * z.C,
                                .map_m = 1,
                                .map_k = z.C,
                                .heads = z.H,
                                .rows = z.Y});
  multiply(DotProduct<T, float>{.a = static_cast<const T*>(w.g.data),
                                .b = joined,
                                .to = w.dcolumns,
                                .M = z.X,
                                .N = z.C,
                                .S = z.Y,
                                .width = z.width,
                                .slice = z.slice(z.G),
                                .slices = z.slices(z.G),
                                .products = z.B * z.H,
                                .a_place = place(w.g, z.H),
                                .b_place = {.heads = 1, .parts = 1, .item = joined_item, .head = 0, .part = 0},
                                .a_m = w.g.token,
                                .a_s = z.X * w.g.token,
                                .b_n = z.width,
                                .b_s = z.C * z.width});
  multiply(DotProduct<float, T>{.a = djoined,
                                .b = static_cast<const T*>(w.v.data),
                                .to = w.drows,
                                .M = z.Y,
                                .N = z.R,
                                .S = z.C,
                                .width = z.width,
                                .slice = z.slice(z.G),
                                .slices = z.slices(z.G),
                                .products = z.B * z.H,
                                .a_place = {.heads = 1, .parts = 1, .item = joined_item, .head = 0, .part = 0},
                                .b_place = place(w.v, z.G),
                                .a_m = z.C * z.width,
                                .a_s = z.width,
                                .b_n = z.C * w.v.token,
                                .b_s = w.v.token,
                                .shared = z.H / z.G});
  multiply(MapProduct<float, T>{.map = w.rows,
                                .from = joined_by_rows<const float>(z, djoined),
                                .to = by_rows<T>(z, w.dv),
                                .M = z.R,
                                .K = z.Y,
                                .N = z.C * z.width,
                                .width = z.width,
                                .products = z.B * z.G,
                                .map_head = z.Y * z.R,
                                .map_m = 1,
                                .map_k = z.R,
                                .heads = z.H,
                                .members = z.H / z.G});
}

}  // namespace

void separable_forward(const SeparableForward& w) {
  const SeparableSizes& z = w.sizes;
  if (z.B * z.H * z.Y * z.X * z.width == 0) return;
  if (w.in_tiles()) return separable_tiles::forward(w);
  with_storage(w.dtype, [&]<class T>(T) { forward<T>(w); });
}

void separable_backward(const SeparableBackward& w) {
  const SeparableSizes& z = w.sizes;
  if (z.B * z.H * z.width == 0) return;
  if (w.in_tiles()) return separable_tiles::backward(w);
  with_storage(w.dtype, [&]<class T>(T) { backward<T>(w); });
}

}  // namespace heed::cuda
