// Loops over two strided arrays, with as few axes as possible.
#pragma once

#include <cstdint>

namespace heed {

// Appends an axis, outermost first, or merges it with the last one where the strides of both arrays allow it.
inline void append_axis(int& rank, int64_t* sizes, int64_t* a_strides, int64_t* b_strides, int64_t size, int64_t a_stride,
                        int64_t b_stride) {
  if (size == 1) return;
  const int last = rank - 1;
  const bool merges = last >= 0 && a_strides[last] == a_stride * size && b_strides[last] == b_stride * size;
  const int axis = merges ? last : rank++;
  sizes[axis] = merges ? sizes[axis] * size : size;
  a_strides[axis] = a_stride;
  b_strides[axis] = b_stride;
}

}  // namespace heed
