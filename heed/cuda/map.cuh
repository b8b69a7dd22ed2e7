// Dense elements through a function of floats: y = f(x), y = f(a, b).
#pragma once

#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/row.cuh"

namespace heed::cuda {

template <class T, class F>
__global__ void map_one(F f, const T* __restrict__ x, T* __restrict__ y, int64_t count) {
  wait_for_previous();
  allow_next();
  for_grid_elements<T>(count, unaligned_head(count, x, y), [&](int64_t i, auto some) {
    auto value = load_some<some.value>(x + i);
#pragma unroll
    for (float& v : value.values) v = f(v);
    store_some(y + i, value);
  });
}

template <class T, class F>
__global__ void map_two(F f, const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ y, int64_t count) {
  wait_for_previous();
  allow_next();
  for_grid_elements<T>(count, unaligned_head(count, a, b, y), [&](int64_t i, auto some) {
    auto value = load_some<some.value>(a + i);
    const auto other = load_some<some.value>(b + i);
#pragma unroll
    for (int k = 0; k < some.value; ++k) value.values[k] = f(value.values[k], other.values[k]);
    store_some(y + i, value);
  });
}

// f is an object with a __device__ operator(). y may be an input, since a thread reads an element before it writes it, but not overlap one
// otherwise.
template <class T, class F>
void map_elements(F f, const void* x, void* y, int64_t count) {
  if (count == 0) return;
  start_early(map_one<T, F>, element_blocks<T>(count), 256, 0, f, static_cast<const T*>(x), static_cast<T*>(y), count);
}
template <class T, class F>
void map_elements(F f, const void* a, const void* b, void* y, int64_t count) {
  if (count == 0) return;
  start_early(map_two<T, F>, element_blocks<T>(count), 256, 0, f, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y),
              count);
}

}  // namespace heed::cuda
