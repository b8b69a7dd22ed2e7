// Sizes of a tensor's axes, stored inline without heap allocation. All products of sizes are computed here, checked for overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "heed/core/api.h"
#include "heed/core/check.h"

namespace HEED_API heed {

inline constexpr int kMaxRank = 8;  // axes of a tensor at most

// The sizes of a tensor, one for each axis: Shape{2, 3} is a matrix of two rows and three columns.
class Shape {
 public:
  // No axes: the shape of a single number.
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes) {
    for (int64_t size : sizes) push_back(size);
  }

  // The number of axes, and their sizes. Axes count from 0; they are not checked.
  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return sizes_[axis]; }
  int64_t& operator[](int axis) { return sizes_[axis]; }
  const int64_t* begin() const { return sizes_; }
  const int64_t* end() const { return sizes_ + rank_; }
  int64_t back() const { return sizes_[rank_ - 1]; }

  // Adds an axis at the end.
  void push_back(int64_t size) {
    check(rank_ < kMaxRank, "shape: more than ", kMaxRank, " axes");
    sizes_[rank_++] = size;
  }

  // The same axes with the same sizes.
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int axis = 0; axis < rank_; ++axis)
      if (sizes_[axis] != other.sizes_[axis]) return false;
    return true;
  }

 private:
  int64_t sizes_[kMaxRank] = {};
  int rank_ = 0;
};

// Writes (2, 3).
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int axis = 0; axis < shape.rank(); ++axis) out << (axis ? ", " : "") << shape[axis];
  return out << ')';
}

// a * b for sizes; overflow and negative sizes are errors.
inline int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  check(a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &product), "shape: ", a, " x ", b, " is not a size that memory can hold");
  return product;
}

// Number of elements of a tensor of this shape. All sizes are checked, even if one is zero.
inline int64_t count(const Shape& shape) {
  int64_t product = 1, bound = 1;
  for (int64_t size : shape) {
    bound = checked_multiply(bound, size > 0 ? size : (size == 0 ? 1 : size));
    product *= size;
  }
  return product == 0 ? 0 : bound;
}

// Row-major strides, in elements.
inline Shape dense_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step = checked_multiply(step, shape[axis] > 0 ? shape[axis] : 1);
  }
  return strides;
}

// Axis -1 is the last one.
inline int normal_axis(const char* op, int axis, int rank) {
  check(axis >= -rank && axis < rank, op, ": axis ", axis, " of a tensor with ", rank, " axes");
  return axis < 0 ? axis + rank : axis;
}

// The common shape of two broadcast operands, aligned at the last axis.
inline Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  Shape out;
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  for (int axis = 0; axis < rank; ++axis) {
    const int from_a = axis - (rank - a.rank()), from_b = axis - (rank - b.rank());
    const int64_t size_a = from_a < 0 ? 1 : a[from_a], size_b = from_b < 0 ? 1 : b[from_b];
    check(size_a == size_b || size_a == 1 || size_b == 1, op, ": shapes ", a, " and ", b, " do not broadcast");
    out.push_back(size_a == 1 ? size_b : size_a);
  }
  return out;
}

}  // namespace heed
