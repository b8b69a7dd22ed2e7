// The sum of exponentials of a row in one pass (Milakov and Gimelshein 2018): of what was seen so far, the largest element and
// the sum of exp(x - largest), which shrinks when a larger one appears.
#pragma once

#include <cfloat>

#include "heed/cuda/row.cuh"

namespace heed::cuda {

struct ExpSum {
  float top = -FLT_MAX, total = 0;  // a finite top: -inf adds exp(-inf) = 0. A row of -inf has the sum 0.

  template <int count>
  __device__ void add(const Floats<count>& x) {
    float largest = x.values[0];
#pragma unroll
    for (int k = 1; k < count; ++k) largest = fmaxf(largest, x.values[k]);
    if (largest > top) {
      total *= expf(top - largest);
      top = largest;
    }
#pragma unroll
    for (int k = 0; k < count; ++k) total += expf(x.values[k] - top);
  }

  // That of all threads of a group.
  template <class Group>
  __device__ ExpSum joined(const Group& group) const {
    ExpSum all;
    all.top = group.max(top);
    all.total = group.sum(total * expf(top - all.top));
    return all;
  }
};

// Of a row of `width` elements.
template <class T, class Group>
__device__ ExpSum exp_sum(const T* x, int64_t width, int64_t head, const Group& group) {
  ExpSum mine;
  for_elements<T>(width, head, group.thread, group.threads, [&](int64_t i, auto count) { mine.add(load_some<count.value>(x + i)); });
  return mine.joined(group);
}

}  // namespace heed::cuda
