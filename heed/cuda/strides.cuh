// Walking strided operands together by the number of an element, without a division by a variable.
#pragma once

#include <bit>
#include <cstdint>

#include "heed/core/shape.h"

namespace heed::cuda {

// n / divisor for 0 <= n < 2^63 by a multiplication: with 2^(l-1) < d <= 2^l and m = floor(2^(63+l) / d) + 1, m d exceeds 2^(63+l) by at
// most 2^l, so that floor(n m / 2^(63+l)) is exact (Granlund and Montgomery 1994).
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor) {
    if (divisor <= 1) return;
    const int bits = std::bit_width(static_cast<uint64_t>(divisor - 1));
    factor_ = static_cast<uint64_t>((static_cast<unsigned __int128>(1) << (63 + bits)) / static_cast<uint64_t>(divisor)) + 1;
    shift_ = bits - 1;
  }

  __device__ int64_t divide(int64_t n) const {
    return divisor_ == 1 ? n : static_cast<int64_t>(__umul64hi(static_cast<uint64_t>(n), factor_) >> shift_);
  }
  // n becomes the quotient, the remainder comes back.
  __device__ int64_t split(int64_t& n) const {
    const int64_t whole = n, quotient = divide(n);
    n = quotient;
    return whole - quotient * divisor_;
  }

 private:
  int64_t divisor_ = 1;
  uint64_t factor_ = 0;
  int shift_ = 0;
};

// Elements in row-major order of `size`, outermost axis first, and their places in several operands. Of the outermost axis only the strides
// are used.
template <int operands>
struct Strides {
  int rank = 0;
  Divider size[kMaxRank];
  int64_t stride[kMaxRank][operands] = {};

  void push_back(int64_t axis_size, const int64_t (&axis_stride)[operands]) {
    size[rank] = Divider(axis_size);
    for (int k = 0; k < operands; ++k) stride[rank][k] = axis_stride[k];
    ++rank;
  }

  __device__ void offsets(int64_t element, int64_t (&at)[operands]) const {
#pragma unroll
    for (int k = 0; k < operands; ++k) at[k] = 0;
    for (int axis = rank - 1; axis > 0; --axis) {
      const int64_t index = size[axis].split(element);
#pragma unroll
      for (int k = 0; k < operands; ++k) at[k] += index * stride[axis][k];
    }
    if (rank == 0) return;
#pragma unroll
    for (int k = 0; k < operands; ++k) at[k] += element * stride[0][k];
  }
};

// body(i) for i in [0, count), over the whole grid; several of one thread at a time.
template <class Body>
__device__ void for_grid(int64_t count, const Body& body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

// T values[count], moved as one where they are 16 bytes or less.
template <class T, int count>
struct alignas(sizeof(T) * count) Group {
  T values[count];
};

}  // namespace heed::cuda
