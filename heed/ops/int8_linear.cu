// The linear layer with int8 weights in CUDA. Rows of x become bytes as on the CPU (quantize_rows.h), with a second, finer row where one
// element is far larger than the others; products of bytes are exact.
#include "heed/ops/int8_linear.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"
#include "heed/cuda/mma.cuh"
#include "heed/ops/epilogue.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kSteps = 127, kFarOut = 8;  // the largest byte; times the root of the mean square

__device__ int8_t rounded_byte(float x) { return static_cast<int8_t>(max(-128, min(127, __float2int_rn(x)))); }

// A block makes the bytes of one row, 0 past the columns. kSplit: bytes (rows, 2, stride), scales (rows, 2), the second one 0 where one
// row of bytes is enough; otherwise (rows, stride) and (rows).
template <bool kSplit>
__global__ void __launch_bounds__(kThreads) quantize_kernel(const float* x, int64_t columns, int64_t stride, int8_t* bytes, float* scales) {
  __shared__ float scratch[32];
  const int64_t row = blockIdx.x;
  const float* const from = x + row * columns;
  float peak = 0, square = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    peak = fmaxf(peak, fabsf(from[i]));
    square = fmaf(from[i], from[i], square);
  }
  peak = block_reduce(peak, scratch, Max(), 0.0f);
  square = block_sum(square, scratch) / static_cast<float>(columns);
  const float scale = peak / kSteps, factor = scale > 0 ? 1 / scale : 0;
  const bool second = kSplit && !(peak * peak <= kFarOut * kFarOut * square);
  const float fine = scale / (2 * kSteps), fine_factor = fine > 0 ? 1 / fine : 0;
  int8_t* const to = bytes + row * stride * (kSplit ? 2 : 1);
  for (int64_t i = threadIdx.x; i < stride; i += kThreads) {
    const float value = i < columns ? from[i] : 0;
    const int8_t byte = rounded_byte(value * factor);
    to[i] = byte;
    if (second) to[stride + i] = rounded_byte(__fsub_rn(value, __fmul_rn(static_cast<float>(byte), scale)) * fine_factor);
  }
  if (threadIdx.x == 0) {
    scales[row * (kSplit ? 2 : 1)] = scale;
    if (kSplit) scales[row * 2 + 1] = second ? fine : 0;
  }
}

struct Product {
  const int8_t *x, *w;                    // (rows, 2, stride), (O, stride)
  const float *scales, *w_scales, *bias;  // (rows, 2), (O), (O) or null
  float* y;                               // (rows, O)
  int64_t rows, O, stride;

  // Before the activation.
  __device__ float result(int64_t row, int64_t o, int first, int second) const {
    const float scale = scales[row * 2], fine = scales[row * 2 + 1];
    const float sum = fine == 0 ? static_cast<float>(first) * (w_scales[o] * scale)
                                : fmaf(static_cast<float>(first), scale, static_cast<float>(second) * fine) * w_scales[o];
    return bias ? sum + bias[o] : sum;
  }
};

constexpr int kWarps = 4, kAhead = 4;

__device__ int dot(const uint4& a, const uint4& b, int sum) {
  sum = __dp4a(static_cast<int>(a.x), static_cast<int>(b.x), sum);
  sum = __dp4a(static_cast<int>(a.y), static_cast<int>(b.y), sum);
  sum = __dp4a(static_cast<int>(a.z), static_cast<int>(b.z), sum);
  return __dp4a(static_cast<int>(a.w), static_cast<int>(b.w), sum);
}

// A warp takes one row of w for up to kRows rows of x; its lanes share the columns, 16 at a time.
template <int kRows>
__global__ void __launch_bounds__(kWarps * 32) few_rows_kernel(const Product p, Activation activation) {
  const int lane = threadIdx.x % 32;
  const int64_t o = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32, packs = p.stride / 16;
  if (o >= p.O) return;
  const auto* const w = reinterpret_cast<const uint4*>(p.w + o * p.stride);
  const auto* const x = reinterpret_cast<const uint4*>(p.x);
  int first[kRows] = {}, second[kRows] = {};
  for (int64_t at = lane; at < packs; at += 32 * kAhead) {
    uint4 ahead[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
      if (at + u * 32 < packs) ahead[u] = __ldcs(w + at + u * 32);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (at + u * 32 >= packs) break;
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        if (m >= p.rows) break;
        first[m] = dot(ahead[u], x[2 * m * packs + at + u * 32], first[m]);
        if (p.scales[2 * m + 1] != 0) second[m] = dot(ahead[u], x[(2 * m + 1) * packs + at + u * 32], second[m]);
      }
    }
  }
  int mine = 0, mine_second = 0;  // lane m finishes row m
#pragma unroll
  for (int m = 0; m < kRows; ++m) {
    const int sum = warp_sum(first[m]), rest = warp_sum(second[m]);
    if (lane == m) mine = sum, mine_second = rest;
  }
  if (lane < kRows && lane < p.rows) p.y[lane * p.O + o] = activate(activation, p.result(lane, o, mine, mine_second));
}

constexpr int kTile = 128, kDepth = 64, kRow = kDepth + 16;  // rows of shared memory start in different banks

// Many rows, by tensor cores: tiles of 128 rows of x by 128 of w, eight warps with 64 by 32 each. Where a row of the tile has second bytes,
// they are multiplied in a second turn.
__global__ void __launch_bounds__(kThreads) tile_kernel(const Product p) {
  __shared__ __align__(16) int8_t left[2][kTile * kRow];
  __shared__ __align__(16) int8_t right[2][kTile * kRow];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  const int64_t row = int64_t{blockIdx.x} * kTile, column = int64_t{blockIdx.y} * kTile;
  const int64_t mine = row + threadIdx.x;
  const bool any = __syncthreads_or(threadIdx.x < kTile && mine < p.rows && p.scales[2 * mine + 1] != 0);
  int first[4][4][4] = {}, sums[4][4][4] = {};
  for (int turn = 0; turn < (any ? 2 : 1); ++turn) {
    if (turn == 1)
#pragma unroll
      for (int i = 0; i < 64; ++i) first[i / 16][i / 4 % 4][i % 4] = sums[i / 16][i / 4 % 4][i % 4], sums[i / 16][i / 4 % 4][i % 4] = 0;
    uint4 next_left[2], next_right[2];  // 128 rows of 4 packs for 256 threads
    const auto fetch = [&](int64_t k) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int64_t line = (threadIdx.x + i * kThreads) / 4, at = k + threadIdx.x % 4 * 16;
        // Second bytes exist only where the scale says so; what others hold is multiplied, and not used.
        const int64_t r = min(row + line, p.rows - 1), o = min(column + line, p.O - 1);
        next_left[i] = *reinterpret_cast<const uint4*>(p.x + (r * 2 + turn) * p.stride + at);
        next_right[i] = *reinterpret_cast<const uint4*>(p.w + o * p.stride + at);
      }
    };
    const auto put = [&](int buffer) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = static_cast<int>((threadIdx.x + i * kThreads) / 4 * kRow + threadIdx.x % 4 * 16);
        *reinterpret_cast<uint4*>(left[buffer] + at) = next_left[i];
        *reinterpret_cast<uint4*>(right[buffer] + at) = next_right[i];
      }
    };
    fetch(0);
    put(0);
    __syncthreads();
    int now = 0;
    for (int64_t k = 0; k < p.stride; k += kDepth, now ^= 1) {
      const bool more = k + kDepth < p.stride;
      if (more) fetch(k + kDepth);
      const int matrix = lane / 8, line = lane % 8;
#pragma unroll
      for (int d = 0; d < kDepth; d += 32) {
        uint32_t x[4][4], y[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          load_matrices(x[i], left[now] + (warp_row + i * 16 + matrix % 2 * 8 + line) * kRow + d + matrix / 2 * 16);
#pragma unroll
        for (int j = 0; j < 2; ++j)
          load_matrices(y[j], right[now] + (warp_column + j * 16 + matrix / 2 * 8 + line) * kRow + d + matrix % 2 * 16);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) multiply_add(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
      if (more) put(now ^ 1);
      __syncthreads();
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t r = row + warp_row + i * 16 + lane / 4 + e / 2 * 8, o = column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
        if (r < p.rows && o < p.O) p.y[r * p.O + o] = p.result(r, o, any ? first[i][j][e] : sums[i][j][e], sums[i][j][e]);
      }
}

}  // namespace

void pack_int8(const PackInt8& args) {
  if (args.O == 0) return;
  start(quantize_kernel<false>, static_cast<unsigned>(args.O), kThreads, 0, args.from, args.I, Int8Rows::stride(args.I), args.packed.bytes,
        args.packed.scales);
}

void int8_linear(const Int8Linear& args) {
  if (args.rows == 0 || args.O == 0) return;
  const int64_t stride = Int8Rows::stride(args.I);
  auto* const bytes = static_cast<int8_t*>(args.workspace);
  auto* const scales = reinterpret_cast<float*>(bytes + args.rows * 2 * stride);
  start(quantize_kernel<true>, static_cast<unsigned>(args.rows), kThreads, 0, args.x, args.I, stride, bytes, scales);
  const Product product{.x = bytes,
                        .w = args.packed.bytes,
                        .scales = scales,
                        .w_scales = args.packed.scales,
                        .bias = args.bias,
                        .y = args.y,
                        .rows = args.rows,
                        .O = args.O,
                        .stride = stride};
  if (args.rows <= 8) {
    const auto kernel = args.rows == 1 ? few_rows_kernel<1> : args.rows <= 4 ? few_rows_kernel<4> : few_rows_kernel<8>;
    return start(kernel, static_cast<unsigned>(divide_up<int64_t>(args.O, kWarps)), kWarps * 32, 0, product, args.activation);
  }
  const auto tiles = [](int64_t size) { return static_cast<unsigned>(divide_up<int64_t>(size, kTile)); };
  start(tile_kernel, dim3(tiles(args.rows), tiles(args.O)), kThreads, 0, product);
  if (args.activation != Activation::none) {
    const Gemm result{
        .M = args.rows, .N = args.O, .K = 0, .a = {}, .b = {}, .c = {.data = args.y, .stride = args.O}, .activation = args.activation};
    finish_sums(result, args.y, nullptr, nullptr, args.y);
  }
}

}  // namespace heed::cuda
