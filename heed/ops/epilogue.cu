#include "heed/ops/epilogue.cuh"

#include "heed/cuda/map.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256, kRowsAtOnce = 4;

template <class Formula>
struct Apply {
  __device__ float operator()(float x) const { return Formula::f(x); }
};

struct Rows {
  Gemm g;  // sizes, strides and batch
  const float* bias;
  const void* sums;
  void *z, *y;
  int64_t rows;   // of all items
  int64_t packs;  // of a row
};

// blockDim.x threads share a row, each with a pack of columns; blockDim.y rows at once, kRowsAtOnce of them per thread in flight.
template <class Formula, class T, int kCount>
__global__ void __launch_bounds__(kThreads) finish_kernel(const Rows p) {
  const int64_t pack = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= p.packs) return;
  const auto* const sums = static_cast<const T*>(p.sums);
  auto *const z = static_cast<T*>(p.z), *const y = static_cast<T*>(p.y);
  float bias[kCount] = {};
  if (p.bias)
#pragma unroll
    for (int i = 0; i < kCount; ++i) bias[i] = p.bias[pack * kCount + i];
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t first = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; first < p.rows; first += kRowsAtOnce * step) {
    int64_t at[kRowsAtOnce];
    Pack<T> values[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const int64_t row = first + r * step;
      if (row >= p.rows) continue;
      at[r] = (p.g.batch_axes == 0 ? row * p.g.c.stride : p.g.item_offset(p.g.c, row / p.g.M) + row % p.g.M * p.g.c.stride) + pack * kCount;
      if (!sums) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) values[r].values[i] = 0;
      } else if constexpr (kCount == 1) {
        values[r].values[0] = load(sums + at[r]);
      } else {
        values[r] = load_pack(sums + at[r]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      if (first + r * step >= p.rows) continue;
      Pack<T> before, after;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float sum = values[r].values[i] + bias[i];
        before.values[i] = sum;
        after.values[i] = Formula::f(z ? rounded_to(sum, T()) : sum);
      }
      if constexpr (kCount == 1) {
        if (z) store(z + at[r], before.values[0]);
        store(y + at[r], after.values[0]);
      } else {
        if (z) store_pack(z + at[r], before);
        store_pack(y + at[r], after);
      }
    }
  }
}

}  // namespace

void finish_sums(const Gemm& g, const void* sums, const float* bias, void* z, void* y) {
  with_storage(g.c.dtype, [&]<class T>(T) {
    constexpr int count = Pack<T>::kCount;
    if (!bias && !z && sums && sums != y && g.batch_axes == 0 && g.c.stride == g.N)
      return formulas::with_formula(g.activation, [&]<class Formula>(Formula) { map_elements<T>(Apply<Formula>(), sums, y, g.M * g.N); });
    bool packs = g.N % count == 0 && g.c.stride % count == 0 && is_aligned(sums) && is_aligned(z) && is_aligned(y);
    for (int axis = 0; axis < g.batch_axes; ++axis) packs = packs && g.c.batch_stride[axis] % count == 0;
    const Rows rows{.g = g, .bias = bias, .sums = sums, .z = z, .y = y, .rows = g.batch() * g.M, .packs = packs ? g.N / count : g.N};
    unsigned along = 1;
    while (along < kThreads && along < rows.packs) along *= 2;
    const unsigned down = kThreads / along;
    const auto across = static_cast<unsigned>(divide_up<int64_t>(rows.packs, along));
    const int64_t most = std::max<int64_t>(1, int64_t{multiprocessor_count()} * 16 / across);
    const dim3 grid(across, static_cast<unsigned>(
                                std::clamp<int64_t>(divide_up<int64_t>(rows.rows, down * kRowsAtOnce), 1, std::min<int64_t>(most, 65535))));
    formulas::with_formula(g.activation, [&]<class Formula>(Formula) {
      start(packs ? finish_kernel<Formula, T, count> : finish_kernel<Formula, T, 1>, grid, dim3(along, down), 0, rows);
    });
  });
}

}  // namespace heed::cuda
