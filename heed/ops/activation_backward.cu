// The gradient of an activation and of the bias before it: z and g are read once.
#include "heed/ops/activation_backward.h"

#include "heed/cuda/column_fold.cuh"
#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/raw_pack.cuh"
#include "heed/ops/formulas.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256, kRowsAtOnce = 4;

// A block has the columns of its threads in x, a pack each, of one part of `size` rows; its threads in y take the rows in turn.
template <class Formula, class T>
__global__ void __launch_bounds__(kThreads) activation_gradients(const ActivationBackward a, int64_t parts, int64_t size) {
  wait_for_previous();
  allow_next();
  constexpr int n = Pack<T>::kCount;
  __shared__ float scratch[kThreads * n];
  const int64_t width = int64_t{blockDim.x} * n, strips = divide_up(a.columns, width), strip = blockIdx.x % strips;
  const int64_t column = strip * width + int64_t{threadIdx.x} * n, part = blockIdx.x / strips, first = part * size;
  const int64_t end = first + size < a.rows ? first + size : a.rows;
  const auto *const z = static_cast<const T*>(a.z) + column, *const g = static_cast<const T*>(a.g) + column;
  T* const dz = static_cast<T*>(a.dz) + column;
  Floats<n> sums{};
  if (column < a.columns)
    for (int64_t begin = first + threadIdx.y; begin < end; begin += kRowsAtOnce * blockDim.y) {
      RawPack<T> before[kRowsAtOnce], gradient[kRowsAtOnce];
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const int64_t row = begin + r * blockDim.y;
        if (row >= end) continue;
        before[r] = load_raw(z + row * a.columns);
        gradient[r] = load_raw(g + row * a.columns);
      }
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const int64_t row = begin + r * blockDim.y;
        if (row >= end) continue;
        Floats<n> d;
#pragma unroll
        for (int k = 0; k < n; ++k) {
          d.values[k] = gradient[r][k] * Formula::df(before[r][k]);
          sums.values[k] += d.values[k];
        }
        store_some(dz + row * a.columns, d);
      }
    }
  const ColumnParts all{.y = a.db, .found = static_cast<float*>(a.workspace), .parts = parts, .columns = a.columns};
  fold_parts(all, part, strip, column, sums, Add(), 0.0f, scratch);
}

template <class Formula, class T>
void start_gradients(const ActivationBackward& a) {
  constexpr int n = Pack<T>::kCount;
  const FoldForward fold = a.fold();
  unsigned across = 1;
  while (across < 32 && across * n < a.columns) across *= 2;
  const int64_t parts = fold.cuda_parts(), blocks = parts * divide_up<int64_t>(a.columns, int64_t{across} * n);
  start_early(activation_gradients<Formula, T>, static_cast<unsigned>(blocks), dim3(across, kThreads / across), 0, a, parts,
              fold.cuda_part());
}

}  // namespace

void activation_backward(const ActivationBackward& a) {
  with_storage(a.dtype, [&]<class T>(T) {
    if (a.columns % Pack<T>::kCount != 0 || !is_aligned(a.z) || !is_aligned(a.g) || !is_aligned(a.dz)) {
      elementwise_backward({.op = a.op, .x = a.z, .g = a.g, .dx = a.dz, .count = a.rows * a.columns, .dtype = a.dtype});
      return fold_forward(a.fold());
    }
#define HEED_START(Formula, function) \
  if (a.op == Elementwise::function) return start_gradients<formulas::Formula, T>(a);
    HEED_ACTIVATIONS(HEED_START)
#undef HEED_START
    fail("activation_backward: this function is not an activation");
  });
}

}  // namespace heed::cuda
