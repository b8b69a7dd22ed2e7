// Softmax and its logarithm over rows. A short row stays in the registers of a warp; of others, the second pass reads them from a cache.
#include "heed/cuda/exp_sum.cuh"
#include "heed/ops/softmax.h"

namespace heed::cuda {
namespace {

constexpr int kShortThreads = 128;
constexpr int64_t kShortRow = 1024;

// Rows of a warp each. Slot s of lane l holds the n elements from (32 s + l) n: packs, or single elements side by side, where rows do not
// begin at aligned addresses.
template <int n, int slots>
struct ShortRow {
  int lane = static_cast<int>(threadIdx.x) % 32, width;
  Floats<n> values[slots];

  __device__ explicit ShortRow(int64_t elements) : width(static_cast<int>(elements)) {}
  static __device__ int64_t first() { return int64_t{blockIdx.x} * (kShortThreads / 32) + threadIdx.x / 32; }
  static __device__ int64_t step() { return int64_t{gridDim.x} * (kShortThreads / 32); }

  template <class T>
  __device__ void read(const T* row, float outside) {
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int at = (s * 32 + lane) * n;
      if (at < width) {
        values[s] = load_some<n>(row + at);
      } else {
        for (float& v : values[s].values) v = outside;
      }
    }
  }
  template <class T>
  __device__ void write(T* row) const {
#pragma unroll
    for (int s = 0; s < slots; ++s)
      if (const int at = (s * 32 + lane) * n; at < width) store_some(row + at, values[s]);
  }
  template <class Body>
  __device__ void each(const Body& body) {  // body(value, slot, place in the slot)
#pragma unroll
    for (int s = 0; s < slots; ++s)
#pragma unroll
      for (int k = 0; k < n; ++k) body(values[s].values[k], s, k);
  }
};

// exp(x - max) / sum, or x - max - log(sum)
template <class T, int n, int slots>
__global__ void __launch_bounds__(kShortThreads) softmax_short_rows(const T* x, T* y, int64_t rows, int64_t width, bool log) {
  ShortRow<n, slots> row(width);
  for (int64_t i = row.first(); i < rows; i += row.step()) {
    row.read(x + i * width, -HUGE_VALF);
    float row_max = -FLT_MAX, row_sum = 0;  // as in ExpSum
    row.each([&](float v, int, int) { row_max = fmaxf(row_max, v); });
    row_max = warp_max(row_max);
    row.each([&](float& v, int, int) {
      const float power = expf(v - row_max);
      row_sum += power;
      if (!log) v = power;
    });
    row_sum = warp_sum(row_sum);
    const float scale = 1 / row_sum, shift = logf(row_sum);
    row.each([&](float& v, int, int) { v = log ? v - row_max - shift : v * scale; });
    row.write(y + i * width);
  }
}

// dx = y (g - sum(g y)), or g - exp(y) sum(g)
template <class T, int n, int slots>
__global__ void __launch_bounds__(kShortThreads)
    softmax_short_gradients(const T* y, const T* g, T* dx, int64_t rows, int64_t width, bool log) {
  ShortRow<n, slots> gradient(width), result(width);
  for (int64_t i = gradient.first(); i < rows; i += gradient.step()) {
    gradient.read(g + i * width, 0);
    result.read(y + i * width, 0);
    float mine = 0;
    gradient.each([&](float v, int s, int k) { mine += log ? v : v * result.values[s].values[k]; });
    const float shared = warp_sum(mine);
    gradient.each([&](float& v, int s, int k) {
      const float r = result.values[s].values[k];
      v = log ? v - expf(r) * shared : r * (v - shared);
    });
    gradient.write(dx + i * width);
  }
}

// visit(Count<n>(), Count<slots>()) for rows of at most kShortRow elements.
template <class T, class Visit>
void with_short_row(int64_t width, bool packed, const Visit& visit) {
  constexpr int pack = Pack<T>::kCount;
  if (packed) {
    if (width <= 32 * pack) return visit(Count<pack>(), Count<1>());
    if (width <= 64 * pack) return visit(Count<pack>(), Count<2>());
    if (width <= 128 * pack) return visit(Count<pack>(), Count<4>());
    return visit(Count<pack>(), Count<kShortRow / 32 / pack>());
  }
  if (width <= 64) return visit(Count<1>(), Count<2>());
  if (width <= 128) return visit(Count<1>(), Count<4>());
  if (width <= 256) return visit(Count<1>(), Count<8>());
  if (width <= 512) return visit(Count<1>(), Count<16>());
  visit(Count<1>(), Count<32>());
}

// Longer rows, each of a block: exp(x - max) / sum, or x - max - log(sum)
template <class T>
__global__ void softmax_rows(const T* x, T* y, int64_t rows, int64_t width, bool log) {
  __shared__ float scratch[32];
  const BlockGroup group(scratch);
  for (int64_t row = group.first_row(); row < rows; row += group.row_step()) {
    const T* const from = x + row * width;
    T* const to = y + row * width;
    const int64_t head = unaligned_head(width, from, to);
    const ExpSum sum = exp_sum(from, width, head, group);
    const float scale = 1 / sum.row_sum, shift = logf(sum.row_sum);
    for_elements<T>(width, head, group.thread, group.threads, [&](int64_t i, auto count) {
      auto value = load_some<count.value>(from + i);
#pragma unroll
      for (float& v : value.values) v = log ? v - sum.row_max - shift : expf(v - sum.row_max) * scale;
      store_some(to + i, value);
    });
  }
}

// dx = y (g - sum(g y)), or g - exp(y) sum(g)
template <class T>
__global__ void softmax_gradients(const T* y, const T* g, T* dx, int64_t rows, int64_t width, bool log) {
  __shared__ float scratch[32];
  const BlockGroup group(scratch);
  for (int64_t row = group.first_row(); row < rows; row += group.row_step()) {
    const T *const probabilities = y + row * width, *const gradient = g + row * width;
    T* const to = dx + row * width;
    const int64_t head = unaligned_head(width, probabilities, gradient, to);
    float mine = 0;
    for_elements<T>(width, head, group.thread, group.threads, [&](int64_t i, auto count) {
      const auto a = load_some<count.value>(gradient + i), b = load_some<count.value>(probabilities + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k) mine += log ? a.values[k] : a.values[k] * b.values[k];
    });
    const float shared = group.sum(mine);
    for_elements<T>(width, head, group.thread, group.threads, [&](int64_t i, auto count) {
      auto a = load_some<count.value>(gradient + i);
      const auto b = load_some<count.value>(probabilities + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k)
        a.values[k] = log ? a.values[k] - expf(b.values[k]) * shared : b.values[k] * (a.values[k] - shared);
      store_some(to + i, a);
    });
  }
}

unsigned threads_of_long_rows(int64_t width) { return width <= 8192 ? 256 : 512; }

}  // namespace

void softmax_forward(const SoftmaxForward& a) {
  if (a.rows == 0 || a.width == 0) return;
  with_storage(a.dtype, [&]<class T>(T) {
    if (a.width <= kShortRow)
      return with_short_row<T>(a.width, a.width % Pack<T>::kCount == 0 && is_aligned(a.x) && is_aligned(a.y),
                               [&]<int n, int slots>(Count<n>, Count<slots>) {
                                 start(softmax_short_rows<T, n, slots>, block_count(a.rows, kShortThreads / 32, 64), kShortThreads, 0,
                                       static_cast<const T*>(a.x), static_cast<T*>(a.y), a.rows, a.width, a.log);
                               });
    start(softmax_rows<T>, block_count(a.rows, 1, 32), threads_of_long_rows(a.width), 0, static_cast<const T*>(a.x), static_cast<T*>(a.y),
          a.rows, a.width, a.log);
  });
}

void softmax_backward(const SoftmaxBackward& a) {
  if (a.rows == 0 || a.width == 0) return;
  with_storage(a.dtype, [&]<class T>(T) {
    if (a.width <= kShortRow)
      return with_short_row<T>(a.width, a.width % Pack<T>::kCount == 0 && is_aligned(a.y) && is_aligned(a.g) && is_aligned(a.dx),
                               [&]<int n, int slots>(Count<n>, Count<slots>) {
                                 start(softmax_short_gradients<T, n, slots>, block_count(a.rows, kShortThreads / 32, 64), kShortThreads, 0,
                                       static_cast<const T*>(a.y), static_cast<const T*>(a.g), static_cast<T*>(a.dx), a.rows, a.width,
                                       a.log);
                               });
    start(softmax_gradients<T>, block_count(a.rows, 1, 32), threads_of_long_rows(a.width), 0, static_cast<const T*>(a.y),
          static_cast<const T*>(a.g), static_cast<T*>(a.dx), a.rows, a.width, a.log);
  });
}

}  // namespace heed::cuda
