// The matrix product in CUDA: few rows by gemv.cu, everything else by cuBLASLt or, without it, by heed's own tiles.
#include "heed/ops/gemm.h"

#include "heed/cuda/cublaslt.h"
#include "heed/ops/epilogue.cuh"
#include "heed/ops/gemm_scratch.h"
#include "heed/ops/gemm_tiles.cuh"
#include "heed/ops/gemv.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostCalls = 64;  // of cuBLASLt for one batch; beyond, one kernel of our own is faster

// to: (items, rows, columns) with rows of to_stride, from: items with the batch strides of `from`
struct RoundRows {
  Gemm g;  // its batch
  GemmOperand from, to;
  int64_t rows, columns, items;
};

__global__ void __launch_bounds__(kThreads) round_kernel(const RoundRows p) {
  const int64_t packs = divide_up<int64_t>(p.columns, 4), size = p.items * p.rows * packs;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += int64_t{gridDim.x} * kThreads) {
    const int64_t row = i / packs, column = i % packs * 4, item = row / p.rows;
    int64_t offset = 0, rest = item;  // items of axes along which the operand is the same are there once
    for (int axis = p.g.batch_axes - 1; axis >= 0; --axis)
      if (p.from.batch_stride[axis] != 0) {
        offset += rest % p.g.batch_size[axis] * p.from.batch_stride[axis];
        rest /= p.g.batch_size[axis];
      }
    const float* const from = static_cast<const float*>(p.from.data) + offset + row % p.rows * p.from.stride + column;
    Bf16* const to = static_cast<Bf16*>(p.to.data) + row * p.to.stride + column;
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = column + j < p.columns ? from[j] : 0;
    if (column + 4 <= p.to.stride && p.to.stride % 4 == 0) {  // padding after the columns is written as 0
      const __nv_bfloat162 low = __floats2bfloat162_rn(values[0], values[1]), high = __floats2bfloat162_rn(values[2], values[3]);
      *reinterpret_cast<uint2*>(to) = make_uint2(*reinterpret_cast<const uint32_t*>(&low), *reinterpret_cast<const uint32_t*>(&high));
    } else {
      for (int j = 0; j < 4; ++j)
        if (column + j < p.columns) store(to + j, values[j]);
    }
  }
}

// Dense and aligned, as most weights are: 8 numbers at a time.
__global__ void __launch_bounds__(kThreads) round_dense_kernel(const float* from, Bf16* to, int64_t packs) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += int64_t{gridDim.x} * kThreads) {
    const Pack<float> low = load_pack(from + i * 8), high = load_pack(from + i * 8 + 4);
    Pack<Bf16> both;
#pragma unroll
    for (int j = 0; j < 4; ++j) both.values[j] = low.values[j], both.values[4 + j] = high.values[j];
    store_pack(to + i * 8, both);
  }
}

// rows, columns: as stored
void round_operand(const Gemm& g, const GemmOperand& from, const GemmOperand& to, int64_t rows, int64_t columns, int64_t items) {
  const int64_t size = rows * columns;
  if (items == 1 && from.stride == columns && to.stride == columns && size % 8 == 0 && is_aligned(from.data) && is_aligned(to.data))
    return start(round_dense_kernel, block_count(size / 8, kThreads), kThreads, 0, static_cast<const float*>(from.data),
                 static_cast<Bf16*>(to.data), size / 8);
  start(round_kernel, block_count(items * rows * divide_up<int64_t>(columns, 4), kThreads), kThreads, 0,
        RoundRows{.g = g, .from = from, .to = to, .rows = rows, .columns = columns, .items = items});
}

// The same products with as few batch axes as possible.
Gemm with_merged_axes(const Gemm& from) {
  Gemm g = from;
  g.batch_axes = 0;
  const auto each = [&](auto visit) {
    visit(from.a, g.a);
    visit(from.b, g.b);
    visit(from.c, g.c);
  };
  for (int axis = 0; axis < from.batch_axes; ++axis) {
    if (from.batch_size[axis] == 1) continue;
    bool joins = g.batch_axes > 0;  // the axis before steps over all of this one
    each([&](const GemmOperand& x, const GemmOperand& y) {
      joins = joins && y.batch_stride[g.batch_axes - 1] == from.batch_size[axis] * x.batch_stride[axis];
    });
    const int at = joins ? g.batch_axes - 1 : g.batch_axes++;
    g.batch_size[at] = (joins ? g.batch_size[at] : 1) * from.batch_size[axis];
    each([&](const GemmOperand& x, GemmOperand& y) { y.batch_stride[at] = x.batch_stride[axis]; });
  }
  return g;
}

// Operands and bias in the types that products take.
Gemm with_one_type(Gemm g, const GemmScratch& scratch) {
  const auto round = [&](GemmOperand& x, int64_t at, int64_t rows, int64_t columns) {
    if (at < 0) return;
    int64_t items = 1;
    const GemmOperand to = rounded_operand(g, x, rows, columns, static_cast<std::byte*>(g.workspace) + at, &items);
    round_operand(g, x, to, rows, columns, items);
    x = to;
  };
  round(g.a, scratch.a, g.a.transposed ? g.K : g.M, g.a.transposed ? g.M : g.K);
  round(g.b, scratch.b, g.b.transposed ? g.N : g.K, g.b.transposed ? g.K : g.N);
  return g;
}

// By cuBLASLt, without activation: strided batches along the longest axis, a call for each item of the others. `narrow`: the bias in bf16
// for a library that does not add an f32 bias to a bf16 result.
bool multiply_by_library(const Gemm& g, const Bf16* narrow) {
  int longest = -1;
  for (int axis = 0; axis < g.batch_axes; ++axis)
    if (longest < 0 || g.batch_size[axis] > g.batch_size[longest]) longest = axis;
  const int64_t batch = longest < 0 ? 1 : g.batch_size[longest], calls = g.batch() / batch;
  if (calls > kMostCalls) return false;
  Gemm outer = g;
  if (longest >= 0) outer.batch_size[longest] = 1;
  const auto matrix = [&](const GemmOperand& x, int64_t item) {
    return LtMatrix{.data = static_cast<std::byte*>(x.data) + outer.item_offset(x, item) * static_cast<int64_t>(bytes_of(x.dtype)),
                    .stride = x.stride,
                    .transposed = x.transposed,
                    .step = longest < 0 ? 0 : x.batch_stride[longest]};
  };
  for (int64_t item = 0; item < calls; ++item) {
    const bool done = lt_multiply({.M = g.M,
                                   .N = g.N,
                                   .K = g.K,
                                   .batch = batch,
                                   .a = matrix(g.a, item),
                                   .b = matrix(g.b, item),
                                   .c = matrix(g.c, item),
                                   .type = g.a.dtype,
                                   .c_type = g.c.dtype,
                                   .bias = narrow ? static_cast<const void*>(narrow) : g.bias,
                                   .bias_type = narrow ? DType::bf16 : DType::f32,
                                   .add = g.add});
    if (!done && item == 0) return false;
    check(done, "matrix product: cuBLASLt refused item ", item, " of ", calls);
  }
  return true;
}

// By kernels of our own, without activation.
void multiply_by_tiles(const Gemm& g) {
  const auto with_layout = [&](auto visit) {
    const bool left = !g.a.transposed, right = g.b.transposed;  // dense along K
    if (left && right) return visit.template operator()<true, true>();
    if (left) return visit.template operator()<true, false>();
    if (right) return visit.template operator()<false, true>();
    visit.template operator()<false, false>();
  };
  if (g.a.dtype == DType::f32)
    return with_layout(
        [&]<bool kLeft, bool kRight> { run_f32_tiles(PlainProblem<kLeft, kRight>{.g = g}, plan_tiles(g.batch(), g.M, g.N, g.K)); });
  const auto aligned = [&](const GemmOperand& x) {
    bool all = is_aligned(x.data) && x.stride % 8 == 0;
    for (int axis = 0; axis < g.batch_axes; ++axis) all = all && x.batch_stride[axis] % 8 == 0;
    return all;
  };
  const int64_t tiles = g.batch() * divide_up<int64_t>(g.M, kMmaLines) * divide_up<int64_t>(g.N, kMmaLines);
  with_layout([&]<bool kLeft, bool kRight> {
    start(bf16_tile_kernel<kLeft, kRight>, static_cast<unsigned>(std::min<int64_t>(tiles, INT32_MAX)), kMmaThreads, 0, g, aligned(g.a),
          aligned(g.b), tiles);
  });
}

// c = a b + bias, or c += a b. True: the bias is in c. scratch: for the bias in bf16, or null
bool multiply(const Gemm& g, Bf16* scratch) {
  const bool adds_bias = g.bias || g.narrow_bias;
  if ((g.bias || !adds_bias) && multiply_by_library(g, nullptr)) return adds_bias;
  if ((g.narrow_bias || (g.bias && scratch)) && !lt_library().empty()) {
    if (!g.narrow_bias)
      start(round_kernel, block_count(g.N, 4 * kThreads), kThreads, 0,
            RoundRows{.g = {},
                      .from = {.data = const_cast<float*>(g.bias), .stride = g.N},
                      .to = {.data = scratch, .stride = g.N, .dtype = DType::bf16},
                      .rows = 1,
                      .columns = g.N,
                      .items = 1});
    if (multiply_by_library(g, g.narrow_bias ? g.narrow_bias : scratch)) return true;
  }
  if (g.bias && g.c.dtype == DType::bf16) {  // a pass over c is left anyway, which adds it
    Gemm without = g;
    without.bias = nullptr, without.narrow_bias = nullptr;
    if (multiply_by_library(without, nullptr)) return false;
  }
  multiply_by_tiles(g);
  return adds_bias;
}

}  // namespace

void gemm(const Gemm& args) {
  if (args.batch() == 0 || args.M == 0 || args.N == 0) return;
  const GemmScratch scratch = gemm_scratch(args);
  Gemm g = with_merged_axes(args);
  if (g.packed_b) {
    g.b = {.data = const_cast<void*>(g.packed_b), .stride = g.b.transposed ? g.K : g.N, .transposed = g.b.transposed, .dtype = DType::bf16};
    g.packed_b = nullptr;
  }
  const auto place = [&](int64_t at) { return at < 0 ? nullptr : static_cast<std::byte*>(g.workspace) + at; };
  if (g.K == 0) {
    if (!g.add) finish_sums(g, nullptr, g.bias, g.z, g.c.data);
    return;
  }
  if (has_few_rows(g)) return multiply_few_rows(g, reinterpret_cast<float*>(place(scratch.parts)));
  g = with_one_type(g, scratch);
  // With an activation, the product waits where z or y will be.
  const bool last = g.activation == Activation::none && !g.z;
  Gemm product = g;
  if (g.z) product.c.data = g.z;
  const bool with_bias = multiply(product, reinterpret_cast<Bf16*>(place(scratch.bias)));
  const float* const bias = with_bias ? nullptr : g.bias;
  if (!last || bias) finish_sums(g, product.c.data, bias, bias ? g.z : nullptr, g.c.data);
}

void pack_gemm(const PackGemm& p) {
  const int64_t rows = p.b.transposed ? p.N : p.K, columns = p.b.transposed ? p.K : p.N;
  check(p.dtype == DType::bf16, "pack_gemm: CUDA packs bf16 only");
  if (rows == 0 || columns == 0) return;
  round_operand({}, p.b, {.data = p.packed, .stride = columns, .transposed = p.b.transposed, .dtype = DType::bf16}, rows, columns, 1);
}

}  // namespace heed::cuda
