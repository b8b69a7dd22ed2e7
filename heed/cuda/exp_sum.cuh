// The sum of exponentials of a row in one pass (Milakov and Gimelshein 2018): of what was seen so far, the largest element and
// the sum of exp(x - largest), which is rescaled when a larger one appears.
#pragma once

#include <cfloat>

#include "heed/cuda/row.cuh"

namespace heed::cuda {

struct ExpSum {
  float row_max = -FLT_MAX, row_sum = 0;  // a finite maximum: -inf adds exp(-inf) = 0. A row of -inf has the sum 0.

  template <int count>
  __device__ void add(const Floats<count>& x) {
    float largest = x.values[0];
#pragma unroll
    for (int k = 1; k < count; ++k) largest = fmaxf(largest, x.values[k]);
    if (largest > row_max) {
      row_sum *= expf(row_max - largest);
      row_max = largest;
    }
#pragma unroll
    for (int k = 0; k < count; ++k) row_sum += expf(x.values[k] - row_max);
  }

  // That of all threads of a group.
  template <class Group>
  __device__ ExpSum joined(const Group& group) const {
    ExpSum all;
    all.row_max = group.max(row_max);
    all.row_sum = group.sum(row_sum * expf(row_max - all.row_max));
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
