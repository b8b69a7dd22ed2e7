// Arguments of the kernels that look up by index. Tensors are seen as (outer, size, inner) around one axis.
#pragma once

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

// Whole rows: y[o][k] = x[o][index[k]]. Moves bytes, whatever the dtype.
struct SelectRows {
  const void* x;         // (outer, size, inner)
  const int64_t* index;  // (rows)
  void* y;               // (outer, rows, inner)
  int64_t outer, size, inner, rows, element_bytes;
};
HEED_KERNEL(select_rows, SelectRows);

// dx[o][v] = the sum of g[o][k] over index[k] = v, in the order of k. Every row of dx is written once.
struct SelectRowsBackward {
  const void* g;         // (outer, rows, inner)
  const int64_t* index;  // (rows)
  float* dx;             // (outer, size, inner)
  int64_t outer, size, inner, rows;
  DType dtype;  // of g
  void* workspace = nullptr;

  // Positions sorted by index: (size + 1) starts, (rows) positions, (size) for the sorting.
  int64_t workspace_bytes(Device) const { return (2 * size + 1 + rows) * static_cast<int64_t>(sizeof(int64_t)); }
};
HEED_KERNEL(select_rows_backward, SelectRowsBackward);

// Single elements: y[o][k][i] = x[o][index[o][k][i]][i].
struct Gather {
  const void* x;         // (outer, size, inner)
  const int64_t* index;  // (outer, lines, inner)
  void* y;               // (outer, lines, inner)
  int64_t outer, size, inner, lines;
  DType dtype;
};
HEED_KERNEL(gather_forward, Gather);

// Columns never meet, and in a column the elements are added in their order.
struct GatherBackward {
  const void* g;         // (outer, lines, inner)
  const int64_t* index;  // (outer, lines, inner), or (lines) where `shared`
  float* dx;             // (outer, size, inner), zeros at first
  int64_t outer, size, inner, lines;
  DType dtype;  // of g
  bool shared;  // one list of indices for all columns
};
HEED_KERNEL(gather_backward, GatherBackward);

}  // namespace heed
