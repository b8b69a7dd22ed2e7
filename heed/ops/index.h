// Arguments of the kernels that look up by index. Tensors are seen as (outer, size, inner) around one axis.
#pragma once

#include <algorithm>

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/shape.h"

namespace heed {

// Fails with the first index outside [0, bound) and its position.
struct CheckIndices {
  const char* op;
  const int64_t* index;  // `shape`
  int64_t bound;
  int rank = 0;
  int64_t shape[kMaxRank] = {};
};
HEED_KERNEL(check_indices, CheckIndices);

// Whole rows: y[o][k] = x[o][index[k]]. Copies bytes, for any dtype.
struct SelectRows {
  const void* x;         // (outer, size, inner)
  const int64_t* index;  // (rows)
  void* y;               // (outer, rows, inner)
  int64_t outer, size, inner, rows, element_bytes;
};
HEED_KERNEL(select_rows, SelectRows);

// How CUDA adds up rows by index: the positions are sorted by it, and each thread sums one chunk in this order.
struct SortedSums {
  static constexpr int64_t kTile = 2048, kDigits = 256;  // positions of a block of the radix sort, values of its digits

  int64_t outer, inner, rows;

  int64_t chunk() const { return std::max<int64_t>(32, (rows + 511) / 512); }
  int64_t chunks() const { return (rows + chunk() - 1) / chunk(); }
  int64_t tiles() const { return (rows + kTile - 1) / kTile; }
  // (outer, chunks, 2, inner) sums at the ends of chunks, (2, rows) keys and (2, rows) positions, (digits, tiles) counts; 4 bytes each.
  int64_t ends() const { return outer * chunks() * 2 * inner; }
  int64_t bytes() const { return 4 * (ends() + 4 * rows + kDigits * tiles()); }
};

// dx[o][v] = the sum of g[o][k] over index[k] = v, in the order of k. Every row of dx is written once.
struct SelectRowsBackward {
  const void* g;         // (outer, rows, inner)
  const int64_t* index;  // (rows)
  float* dx;             // (outer, size, inner)
  int64_t outer, size, inner, rows;
  DType dtype;  // of g
  void* workspace = nullptr;

  // Positions sorted by index: (size + 1) starts, (rows) positions, (size) for the sorting.
  int64_t workspace_bytes(Device device) const {
    if (device.kind == Device::Kind::cuda) return SortedSums{outer, inner, rows}.bytes();
    return (2 * size + 1 + rows) * static_cast<int64_t>(sizeof(int64_t));
  }
};
HEED_KERNEL(select_rows_backward, SelectRowsBackward);

// The same for rows too short to be worth sorting.
struct SelectShortRowsBackward {
  const void* g;         // (outer, rows, inner)
  const int64_t* index;  // (rows)
  float* dx;             // (outer, size, inner), zeros at first
  int64_t outer, size, inner, rows;
  DType dtype;  // of g
  void* workspace = nullptr;

  int64_t workspace_bytes(Device device) const { return device.kind == Device::Kind::cuda ? SortedSums{outer, inner, rows}.bytes() : 0; }
};
HEED_KERNEL(select_short_rows_backward, SelectShortRowsBackward);

}  // namespace heed
