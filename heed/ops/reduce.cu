// Reductions of (outer, reduced, inner). Where there are few outputs, parts of the reduced axis are folded first and their results
// afterwards. All cuts depend on the shape alone, so the order of every sum is fixed.
#include <limits>

#include "heed/cuda/column_fold.cuh"
#include "heed/cuda/early_launch.cuh"
#include "heed/ops/reduce.h"

namespace heed::cuda {
namespace {

constexpr int kColumnThreads = 256;

// What a fold does with each element and its output's `about`, how it joins two results, and, where it is used backwards, what an
// element gets of its output's gradient.
struct Sum {
  static constexpr bool has_about = false;
  static constexpr float start = 0;
  static __device__ float take(float x, float) { return x; }
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct SquaredDeviations : Sum {
  static constexpr bool has_about = true;
  static __device__ float take(float x, float mean) { return (x - mean) * (x - mean); }
  static __device__ float back(float x, float mean, float g) { return 2 * (x - mean) * g; }
};
struct Ties : Sum {  // how many elements are the largest; where that is NaN, how many are NaN
  static constexpr bool has_about = true;
  static __device__ float take(float x, float largest) { return back(x, largest, 1); }
  static __device__ float back(float x, float largest, float g) { return x != x || x == largest ? g : 0; }
};
struct Largest {  // a NaN wins
  static constexpr bool has_about = false;
  static constexpr float start = -std::numeric_limits<float>::infinity();
  static __device__ float take(float x, float) { return x; }
  __device__ float operator()(float a, float b) const { return a != a || a > b ? a : b; }
};

// (outer, reduced) -> (outer, parts), parts of `size` elements
template <class F, class T, class Group>
__global__ void fold_rows(const T* x, const float* about, float* y, int64_t outer, int64_t reduced, int64_t parts, int64_t size) {
  __shared__ float scratch[32];
  const Group group(scratch);
  const F join;
  for (int64_t unit = group.first_row(); unit < outer * parts; unit += group.row_step()) {
    const int64_t row = unit / parts, begin = unit % parts * size, rest = reduced - begin, here = rest < size ? rest : size;
    const T* const from = x + row * reduced + begin;
    const float middle = F::has_about ? about[row] : 0;
    float mine[Pack<T>::kCount];
    for (float& m : mine) m = F::start;
    for_elements<T>(here, unaligned_head(here, from), group.thread, group.threads, [&](int64_t i, auto n) {
      const auto value = load_some<n.value>(from + i);
#pragma unroll
      for (int k = 0; k < n.value; ++k) mine[k] = join(mine[k], F::take(value.values[k], middle));
    });
#pragma unroll
    for (int step = Pack<T>::kCount / 2; step > 0; step /= 2)
#pragma unroll
      for (int k = 0; k < step; ++k) mine[k] = join(mine[k], mine[k + step]);
    const float result = group.reduce(mine[0], join, F::start);
    if (group.thread == 0) y[unit] = result;
  }
}

// (outer, reduced, inner) -> (outer, inner), by way of (outer, parts, inner) with parts of `size` rows. A block folds the columns of its
// threads in x, n each, of one part; its threads in y take the rows in turn.
template <class F, class Join, class T, int n>
__global__ void __launch_bounds__(kColumnThreads)
    fold_columns(const T* x, const float* about, float* y, float* results, int64_t reduced, int64_t inner, int64_t parts, int64_t size) {
  wait_for_previous();
  allow_next();
  __shared__ float scratch[kColumnThreads * n];
  const F join;
  const int64_t width = int64_t{blockDim.x} * n, strips = (inner + width - 1) / width, strip = blockIdx.x % strips;
  const int64_t column = strip * width + int64_t{threadIdx.x} * n, unit = blockIdx.x / strips;
  const int64_t part = unit % parts, first = part * size, end = first + size < reduced ? first + size : reduced, o = unit / parts;
  Floats<n> mine, middle{};
  for (float& m : mine.values) m = F::start;
  if (column < inner) {
    if constexpr (F::has_about)
      for (int k = 0; k < n; ++k) middle.values[k] = about[o * inner + column + k];
    const T* const from = x + o * reduced * inner + column;
#pragma unroll 8
    for (int64_t row = first + threadIdx.y; row < end; row += blockDim.y) {
      const auto value = load_some<n>(from + row * inner);
#pragma unroll
      for (int k = 0; k < n; ++k) mine.values[k] = join(mine.values[k], F::take(value.values[k], middle.values[k]));
    }
  }
  const ColumnParts all{.y = y + o * inner, .found = results + o * parts * inner, .parts = parts, .columns = inner};
  fold_parts(all, part, o * strips + strip, column, mine, Join(), Join::start, scratch);
}

// A thread for each output, or n outputs side by side: for many outputs or few rows.
template <class F, class T, int n>
__global__ void fold_each(const T* x, const float* about, float* y, int64_t outer, int64_t reduced, int64_t inner) {
  const F join;
  const int64_t step = int64_t{gridDim.x} * blockDim.x * n;
  for (int64_t output = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n; output < outer * inner; output += step) {
    const T* const from = x + output / inner * reduced * inner + output % inner;
    Floats<n> mine, middle{};
    for (float& m : mine.values) m = F::start;
    if constexpr (F::has_about)
      for (int k = 0; k < n; ++k) middle.values[k] = about[output + k];
#pragma unroll 4
    for (int64_t row = 0; row < reduced; ++row) {
      const auto value = load_some<n>(from + row * inner);
#pragma unroll
      for (int k = 0; k < n; ++k) mine.values[k] = join(mine.values[k], F::take(value.values[k], middle.values[k]));
    }
#pragma unroll
    for (int k = 0; k < n; ++k) y[output + k] = mine.values[k];
  }
}

template <class F, class Join, class T, int n>
void start_columns(const FoldForward& f, int64_t parts, int64_t size) {
  unsigned across = 1;
  while (across < 32 && across * n < f.inner) across *= 2;
  const int64_t blocks = f.outer * parts * divide_up<int64_t>(f.inner, int64_t{across} * n);
  start_early(fold_columns<F, Join, T, n>, static_cast<unsigned>(blocks), dim3(across, kColumnThreads / across), 0,
              static_cast<const T*>(f.x), f.about, f.y, static_cast<float*>(f.workspace), f.reduced, f.inner, parts, size);
}

// x: (outer, reduced) -> y: (outer, parts)
template <class F, class T>
void start_rows(const T* x, const float* about, float* y, int64_t outer, int64_t reduced, int64_t parts, int64_t size) {
  with_group(outer * parts, std::min(reduced, size), [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
    start(fold_rows<F, T, Group>, blocks, threads, 0, x, about, y, outer, reduced, parts, size);
  });
}

// `Join` is the fold of results of parts.
template <class F, class Join, class T>
void fold_all(const FoldForward& f) {
  constexpr int pack = Pack<T>::kCount;
  const T* const x = static_cast<const T*>(f.x);
  const bool packed = f.inner % pack == 0 && is_aligned(x);
  const int64_t outputs = f.outer * f.inner, parts = f.cuda_parts(), size = f.cuda_part();
  if (parts == 1 && (f.reduced <= 16 || (f.inner > 1 && outputs >= 1 << 20)))
    return packed ? start(fold_each<F, T, pack>, block_count(outputs, 256 * pack), 256, 0, x, f.about, f.y, f.outer, f.reduced, f.inner)
                  : start(fold_each<F, T, 1>, block_count(outputs, 256), 256, 0, x, f.about, f.y, f.outer, f.reduced, f.inner);
  if (f.inner > 1) return packed ? start_columns<F, Join, T, pack>(f, parts, size) : start_columns<F, Join, T, 1>(f, parts, size);
  if (parts == 1) return start_rows<F>(x, f.about, f.y, f.outer, f.reduced, 1, f.reduced);
  auto* const results = static_cast<float*>(f.workspace);
  start_rows<F>(x, f.about, results, f.outer, f.reduced, parts, size);
  start_rows<Join>(results, nullptr, f.y, f.outer, parts, 1, parts);
}

// n elements side by side belong to outputs side by side, or to the same one if inner is 1.
template <class F, class T, int n>
__global__ void spread(const T* x, const float* about, const float* g, T* dx, int64_t outer, int64_t reduced, int64_t inner) {
  const int64_t count = outer * reduced * inner, step = int64_t{gridDim.x} * blockDim.x * n;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n; i < count; i += step) {
    const int64_t line = i / inner, output = line / reduced * inner + (i - line * inner);
    auto value = load_some<n>(x + i);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const int64_t at = inner == 1 ? output : output + k;
      value.values[k] = F::back(value.values[k], about[at], g[at]);
    }
    store_some(dx + i, value);
  }
}

template <class F, class T>
void spread_all(const FoldBackward& f) {
  constexpr int pack = Pack<T>::kCount;
  const T* const x = static_cast<const T*>(f.x);
  T* const dx = static_cast<T*>(f.dx);
  const int64_t count = f.outer * f.reduced * f.inner;
  if ((f.inner == 1 ? f.reduced : f.inner) % pack == 0 && is_aligned(x) && is_aligned(dx))
    return start(spread<F, T, pack>, element_blocks<T>(count), 256, 0, x, f.about, f.g, dx, f.outer, f.reduced, f.inner);
  start(spread<F, T, 1>, block_count(count, 256), 256, 0, x, f.about, f.g, dx, f.outer, f.reduced, f.inner);
}

template <class T>
__device__ bool is_found(const T* element, float maximum) {
  const float value = load(element);
  return value != value || value == maximum;
}

// A thread for each output.
template <class T>
__global__ void first_of_few(const T* x, const float* maximum, int64_t* y, int64_t outputs, int64_t reduced, int64_t inner) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t output = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; output < outputs; output += step) {
    const T* const from = x + output / inner * reduced * inner + output % inner;
    int64_t i = 0;
    while (i + 1 < reduced && !is_found(from + i * inner, maximum[output])) ++i;
    y[output] = i;
  }
}

// A block for each output: each thread finds its first, and the smallest index is the result.
template <class T>
__global__ void first_of_many(const T* x, const float* maximum, int64_t* y, int64_t outputs, int64_t reduced, int64_t inner) {
  __shared__ int64_t scratch[32];
  for (int64_t output = blockIdx.x; output < outputs; output += gridDim.x) {
    const T* const from = x + output / inner * reduced * inner + output % inner;
    int64_t mine = reduced - 1;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < reduced; i += blockDim.x)
      if (i < mine && is_found(from + i * inner, maximum[output])) mine = i;
    const auto smaller = [](int64_t a, int64_t b) { return a < b ? a : b; };
    mine = block_reduce(mine, scratch, smaller, reduced - 1);
    if (threadIdx.x == 0) y[output] = mine;
  }
}

}  // namespace

void fold_forward(const FoldForward& f) {
  if (f.outer == 0 || f.inner == 0 || f.reduced == 0) return;
  check(f.blocks == 1, "fold_forward: ", f.blocks, " blocks on a GPU, expected 1");
  with_storage(f.dtype, [&]<class T>(T) {
    switch (f.kind) {
      case Fold::sum: return fold_all<Sum, Sum, T>(f);
      case Fold::max: return fold_all<Largest, Largest, T>(f);
      case Fold::squared_deviations: return fold_all<SquaredDeviations, Sum, T>(f);
      case Fold::ties: return fold_all<Ties, Sum, T>(f);
    }
  });
}

void fold_backward(const FoldBackward& f) {
  if (f.outer == 0 || f.inner == 0 || f.reduced == 0) return;
  with_storage(f.dtype, [&]<class T>(T) { f.kind == Fold::ties ? spread_all<Ties, T>(f) : spread_all<SquaredDeviations, T>(f); });
}

void argmax_forward(const Argmax& a) {
  const int64_t outputs = a.outer * a.inner;
  if (outputs == 0 || a.reduced == 0) return;
  with_storage(a.dtype, [&]<class T>(T) {
    const T* const x = static_cast<const T*>(a.x);
    if (a.reduced <= 32 || a.inner >= 32)
      return start(first_of_few<T>, block_count(outputs, 128), 128, 0, x, a.maximum, a.y, outputs, a.reduced, a.inner);
    const unsigned threads = a.reduced <= 1024 ? 64 : a.reduced <= 8192 ? 256 : 1024;
    start(first_of_many<T>, block_count(outputs, 1, 64), threads, 0, x, a.maximum, a.y, outputs, a.reduced, a.inner);
  });
}

}  // namespace heed::cuda
