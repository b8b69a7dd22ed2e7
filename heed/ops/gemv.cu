#include "heed/ops/gemv.cuh"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"
#include "heed/cuda/raw_pack.cuh"
#include "heed/ops/epilogue.cuh"
#include "heed/ops/gemm_scratch.h"

namespace heed::cuda {
namespace {

// An element as the product sees it: where one operand is bf16, the other is rounded.
template <class T, class Other>
__device__ float operand(float x, T, Other) {
  if constexpr (std::is_same_v<Other, Bf16>) return rounded_to(x, Bf16());
  return x;
}

struct FewRows {
  Gemm g;
  int64_t a_row, a_column;  // strides of a
};

constexpr int kWarps = 4;

// b: (N, K) with dense rows. A warp takes kColumns columns of c, which are rows of b, for up to kRows rows of a; its lanes share K, kAhead
// packs of 16 bytes each in flight. Without kPacks, elements come one by one: nothing is known of alignment.
template <class A, class B, int kRows, int kColumns, int kAhead, bool kPacks>
__global__ void __launch_bounds__(kWarps * 32) dot_kernel(const FewRows p, const Finish finish) {
  constexpr int count = kPacks ? WeightPack<B>::kCount : 1;
  const Gemm& g = p.g;
  const int lane = threadIdx.x % 32;
  const int64_t column = (int64_t{blockIdx.x} * kWarps + threadIdx.x / 32) * kColumns, item = blockIdx.y;
  if (column >= g.N) return;
  const A* const a = static_cast<const A*>(g.a.data) + g.item_offset(g.a, item);
  const B* const b = static_cast<const B*>(g.b.data) + g.item_offset(g.b, item);
  const B* rows[kColumns];  // past the last column: the last one again, whose sums are not stored
#pragma unroll
  for (int c = 0; c < kColumns; ++c) rows[c] = b + (column + c < g.N ? column + c : g.N - 1) * g.b.stride;
  float sums[kRows][kColumns] = {};
  for (int64_t first = int64_t{lane} * count; first < g.K; first += 32 * count * kAhead) {
    WeightPack<B> ahead[kAhead][kColumns];
    float single[kAhead][kColumns];
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (first + u * 32 * count < g.K) {
          if constexpr (kPacks) {
            ahead[u][c].load(rows[c] + first + u * 32 * count);
          } else {
            single[u][c] = load(rows[c] + first + u * 32);
          }
        }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t k = first + u * 32 * count;
      if (k >= g.K) break;
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        if (m >= g.M) break;
        float left[count];
        if constexpr (kPacks) {  // a's rows are dense and aligned as well
#pragma unroll
          for (int i = 0; i < count; i += Pack<A>::kCount < count ? Pack<A>::kCount : count) {
            if constexpr (Pack<A>::kCount <= count) {
              const Pack<A> pack = load_pack(a + m * p.a_row + k + i);
#pragma unroll
              for (int j = 0; j < Pack<A>::kCount; ++j) left[i + j] = pack.values[j];
            } else {  // bf16 beside f32: half a pack
              const uint2 half = *reinterpret_cast<const uint2*>(a + m * p.a_row + k);
              left[0] = __uint_as_float(half.x << 16), left[1] = __uint_as_float(half.x & 0xffff0000u);
              left[2] = __uint_as_float(half.y << 16), left[3] = __uint_as_float(half.y & 0xffff0000u);
            }
          }
        } else {
          left[0] = load(a + m * p.a_row + k * p.a_column);
        }
#pragma unroll
        for (int i = 0; i < count; ++i) {
          const float x = operand(left[i], A(), B());
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            const float y = kPacks ? ahead[u][c].value(i) : single[u][c];
            sums[m][c] = fmaf(x, operand(y, B(), A()), sums[m][c]);
          }
        }
      }
    }
  }
  float mine = 0;  // lane m * kColumns + c finishes that sum
#pragma unroll
  for (int m = 0; m < kRows; ++m)
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float sum = warp_sum(sums[m][c]);
      if (lane == m * kColumns + c) mine = sum;
    }
  const int64_t m = lane / kColumns, n = column + lane % kColumns;
  if (m < g.M && m < kRows && n < g.N) finish(g.item_offset(g.c, item) + m * g.c.stride + n, n, mine);
}

constexpr int kDeepWarps = 8;

// b: (K, N) with dense rows. A lane takes kCount columns, each warp of the block every eighth row of b in a part of K; the warps' sums are
// added in order. parts: null, or where the sums of parts go, (parts, items, M, N)
template <class A, class B, int kRows, bool kPacks>
__global__ void __launch_bounds__(kDeepWarps * 32) combine_kernel(const FewRows p, const Finish finish, int64_t depth, float* parts) {
  constexpr int count = WeightPack<B>::kCount, width = 32 * count, ahead_rows = kPacks ? 4 : 1;
  __shared__ float shared[kDeepWarps][width], totals[kRows * width];
  const Gemm& g = p.g;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first_column = int64_t{blockIdx.x} * width, item = blockIdx.y, part = blockIdx.z;
  const int64_t begin = part * depth, end = begin + depth < g.K ? begin + depth : g.K;
  const A* const a = static_cast<const A*>(g.a.data) + g.item_offset(g.a, item);
  const B* const b = static_cast<const B*>(g.b.data) + g.item_offset(g.b, item);
  // Without packs, a lane's columns are 32 apart, so that a warp reads without gaps.
  const int64_t column = first_column + lane * (kPacks ? count : 1);
  float sums[kRows][count] = {};
  for (int64_t first = begin + warp; first < end; first += kDeepWarps * ahead_rows) {
    WeightPack<B> ahead[ahead_rows];
    float single[ahead_rows][kPacks ? 1 : count];
#pragma unroll
    for (int u = 0; u < ahead_rows; ++u) {
      const int64_t k = first + u * kDeepWarps;
      if (k >= end) break;
      const B* const row = b + k * g.b.stride;
      if constexpr (kPacks) {
        if (column < g.N) ahead[u].load(row + column);
      } else {
#pragma unroll
        for (int i = 0; i < count; ++i) single[u][i] = column + 32 * i < g.N ? load(row + column + 32 * i) : 0;
      }
    }
#pragma unroll
    for (int u = 0; u < ahead_rows; ++u) {
      const int64_t k = first + u * kDeepWarps;
      if (k >= end) break;
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        if (m >= g.M) break;
        const float x = operand(load(a + m * p.a_row + k * p.a_column), A(), B());
#pragma unroll
        for (int i = 0; i < count; ++i) {
          const float y = kPacks ? ahead[u].value(i) : single[u][i];
          sums[m][i] = fmaf(x, operand(y, B(), A()), sums[m][i]);
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kRows; ++m) {
    if (m >= g.M) break;
#pragma unroll
    for (int i = 0; i < count; ++i) shared[warp][kPacks ? lane * count + i : lane + 32 * i] = sums[m][i];
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += kDeepWarps * 32) {
      float total = 0;
#pragma unroll
      for (int w = 0; w < kDeepWarps; ++w) total += shared[w][i];
      totals[m * width + i] = total;  // read by this thread alone
    }
    __syncthreads();
  }
  for (int64_t m = 0; m < g.M; ++m)
    for (int i = threadIdx.x; i < width; i += kDeepWarps * 32) {
      const int64_t n = first_column + i;
      if (n >= g.N) break;
      const float total = totals[m * width + i];
      if (parts) {
        parts[((part * gridDim.y + item) * g.M + m) * g.N + n] = total;
      } else {
        finish(g.item_offset(g.c, item) + m * g.c.stride + n, n, total);
      }
    }
}

// Adds the parts in order.
__global__ void __launch_bounds__(256) join_kernel(const Gemm g, const Finish finish, const float* parts, int64_t count, int64_t items) {
  const int64_t size = items * g.M * g.N;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < size; i += int64_t{gridDim.x} * 256) {
    float sum = 0;
#pragma unroll 8
    for (int64_t part = 0; part < count; ++part) sum += parts[part * size + i];
    const int64_t row = i / g.N, n = i % g.N;
    finish(g.item_offset(g.c, row / g.M) + row % g.M * g.c.stride + n, n, sum);
  }
}

// Whether every row of every matrix of an operand, as stored, starts at a multiple of 16 bytes (or `bytes`).
bool rows_aligned(const Gemm& g, const GemmOperand& x, int64_t bytes = 16) {
  const auto size = static_cast<int64_t>(bytes_of(x.dtype));
  bool aligned = reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(bytes) == 0 && x.stride * size % bytes == 0;
  for (int axis = 0; axis < g.batch_axes; ++axis) aligned = aligned && x.batch_stride[axis] * size % bytes == 0;
  return aligned;
}

template <class A, class B>
void multiply_with_dense_columns(const FewRows& p, int64_t items) {
  const Gemm& g = p.g;
  const bool packs = g.K % WeightPack<B>::kCount == 0 && rows_aligned(g, g.b) && !g.a.transposed && rows_aligned(g, g.a);
  const auto run = [&]<int kRows, int kColumns, int kAhead, bool kPacks>() {
    const dim3 grid(static_cast<unsigned>(divide_up<int64_t>(g.N, kWarps * kColumns)), static_cast<unsigned>(items));
    start(dot_kernel<A, B, kRows, kColumns, kAhead, kPacks>, grid, kWarps * 32, 0, p, Finish(g));
  };
  if (!packs) return run.template operator()<8, 1, 4, false>();
  if (g.M == 1) return run.template operator()<1, 1, 4, true>();
  if (g.M <= 4) return run.template operator()<4, 2, 4, true>();
  run.template operator()<8, 4, 2, true>();
}

template <class A, class B>
void multiply_with_dense_rows(const FewRows& p, int64_t items, float* sums) {
  const Gemm& g = p.g;
  const FewRowsParts parts = few_rows_parts(g);
  const bool packs = g.N % WeightPack<B>::kCount == 0 && rows_aligned(g, g.b);
  const auto run = [&]<int kRows, bool kPacks>() {
    const dim3 grid(static_cast<unsigned>(divide_up(g.N, parts.columns)), static_cast<unsigned>(items), static_cast<unsigned>(parts.count));
    start(combine_kernel<A, B, kRows, kPacks>, grid, kDeepWarps * 32, 0, p, Finish(g), parts.depth, sums);
  };
  if (!packs) {
    run.template operator()<8, false>();
  } else if (g.M == 1) {
    run.template operator()<1, true>();
  } else if (g.M <= 4) {
    run.template operator()<4, true>();
  } else {
    run.template operator()<8, true>();
  }
  if (sums) start(join_kernel, block_count(items * g.M * g.N, 256), 256, 0, g, Finish(g), sums, parts.count, items);
}

}  // namespace

void multiply_few_rows(const Gemm& g, float* parts) {
  const FewRows p{.g = g, .a_row = g.a.transposed ? 1 : g.a.stride, .a_column = g.a.transposed ? g.a.stride : 1};
  with_storage(g.a.dtype, [&]<class A>(A) {
    with_storage(g.b.dtype, [&]<class B>(B) {
      if (g.b.transposed) return multiply_with_dense_columns<A, B>(p, g.batch());
      multiply_with_dense_rows<A, B>(p, g.batch(), parts);
    });
  });
}

}  // namespace heed::cuda
