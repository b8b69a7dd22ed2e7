// The gradient of an activation together with that of the bias before it.
#pragma once

#include "heed/ops/elementwise.h"
#include "heed/ops/reduce.h"

namespace heed {

struct ActivationBackward {  // dz = g f'(z), db = sum of dz over the rows
  Elementwise op;            // one of the activations
  const void *z, *g;         // (rows, columns)
  void* dz;                  // (rows, columns); may be z
  float* db;                 // (columns)
  int64_t rows, columns;
  DType dtype;  // of z, g and dz
  void* workspace = nullptr;

  // db as a sum over dz. Its parts on a GPU are those of the kernel as well.
  FoldForward fold() const {
    return {.kind = Fold::sum,
            .x = dz,
            .about = nullptr,
            .y = db,
            .outer = 1,
            .reduced = rows,
            .inner = columns,
            .blocks = 1,
            .dtype = dtype,
            .workspace = workspace};
  }
  int64_t workspace_bytes(Device device) const {
    if (device.kind == Device::Kind::cuda) return fold().workspace_bytes(device);
    int64_t results = 0;
    for (int64_t parts = cpu_fold_parts(rows, columns); parts > 1; parts = cpu_fold_parts(parts, columns)) results += parts * columns;
    return results * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(activation_backward, ActivationBackward);

}  // namespace heed
