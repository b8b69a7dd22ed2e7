// Softmax and its logarithm over rows. The second pass over a row reads it from a cache.
#include "heed/cuda/exp_sum.cuh"
#include "heed/ops/softmax.h"

namespace heed::cuda {
namespace {

// exp(x - max) / sum, or x - max - log(sum)
template <class T, class Group>
__global__ void softmax_rows(const T* x, T* y, int64_t rows, int64_t width, bool log) {
  __shared__ float scratch[32];
  const Group group(scratch);
  for (int64_t row = group.first_row(); row < rows; row += group.row_step()) {
    const T* const from = x + row * width;
    T* const to = y + row * width;
    const int64_t head = unaligned_head(width, from, to);
    const ExpSum sum = exp_sum(from, width, head, group);
    const float scale = 1 / sum.total, shift = logf(sum.total);
    for_elements<T>(width, head, group.thread, group.threads, [&](int64_t i, auto count) {
      auto value = load_some<count.value>(from + i);
#pragma unroll
      for (float& v : value.values) v = log ? v - sum.top - shift : expf(v - sum.top) * scale;
      store_some(to + i, value);
    });
  }
}

// dx = y (g - sum(g y)), or g - exp(y) sum(g)
template <class T, class Group>
__global__ void softmax_gradients(const T* y, const T* g, T* dx, int64_t rows, int64_t width, bool log) {
  __shared__ float scratch[32];
  const Group group(scratch);
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

}  // namespace

void softmax_forward(const SoftmaxForward& a) {
  if (a.rows == 0 || a.width == 0) return;
  with_storage(a.dtype, [&]<class T>(T) {
    with_group(a.rows, a.width, [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
      start(softmax_rows<T, Group>, blocks, threads, 0, static_cast<const T*>(a.x), static_cast<T*>(a.y), a.rows, a.width, a.log);
    });
  });
}

void softmax_backward(const SoftmaxBackward& a) {
  if (a.rows == 0 || a.width == 0) return;
  with_storage(a.dtype, [&]<class T>(T) {
    with_group(a.rows, a.width, [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
      start(softmax_gradients<T, Group>, blocks, threads, 0, static_cast<const T*>(a.y), static_cast<const T*>(a.g), static_cast<T*>(a.dx),
            a.rows, a.width, a.log);
    });
  });
}

}  // namespace heed::cuda
