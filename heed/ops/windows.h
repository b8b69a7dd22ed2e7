// Tensors that are windows of one tensor, as split() makes them.
#pragma once

#include "heed/core/raw.h"

namespace heed {

// The tensor of which these are adjacent windows along an axis, without a copy; undefined if they are not adjacent, or if it is not dense.
inline Tensor joined_windows(const Tensors& windows, int axis) {
  if (windows.empty() || !windows[0].defined()) return {};
  const Tensor& first = windows[0];
  Shape shape = first.shape();
  shape[axis] = 0;
  for (const Tensor& each : windows) {
    if (!each.defined() || each.dtype() != first.dtype() || !each.shares_data_with(first) || each.strides() != first.strides()) return {};
    const int64_t before = shape[axis] * first.strides()[axis] * static_cast<int64_t>(bytes_of(first.dtype()));
    if (Raw::bytes(each) != Raw::bytes(first) + before) return {};
    shape[axis] += each.size(axis);
  }
  const Tensor whole = first.view(shape, first.strides());
  return whole.is_contiguous() ? whole : Tensor();
}

}  // namespace heed
