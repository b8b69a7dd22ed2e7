// Arguments of the reduction kernels. A tensor is seen as (outer, reduced, inner).
#pragma once

#include <algorithm>

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace heed {

inline constexpr int64_t kFoldBlock = 1 << 15;  // elements reduced by one block: enough work for a task
inline constexpr int64_t kFoldStrip = 512;      // maximum elements of the inner axis that are reduced together

// Number of parts of at most `most` elements.
inline int64_t even_parts(int64_t size, int64_t most) { return size > most ? (size + most - 1) / most : 1; }

// How many parts a CPU cuts the reduced axis into.
inline int64_t cpu_fold_parts(int64_t reduced, int64_t inner) {
  const int64_t strips = even_parts(inner, kFoldStrip), width = (inner + strips - 1) / strips;
  return even_parts(reduced, inner == 1 ? kFoldBlock : std::min<int64_t>(512, kFoldBlock / width));
}

enum class Fold : uint8_t { sum, max, squared_deviations, ties };

// The reduced axis is split into `blocks` equal parts, which are reduced independently. A second launch reduces their results. On a GPU
// `blocks` is 1: both steps are in one call, by way of the workspace.
struct FoldForward {
  Fold kind;
  const void* x;       // (outer, reduced, inner)
  const float* about;  // (outer, inner): the mean of squared deviations, the maximum of ties; else null
  float* y;            // (outer, blocks, inner)
  int64_t outer, reduced, inner, blocks;
  DType dtype;  // of x
  void* workspace = nullptr;

  // How many rows of the reduced axis one part has on a GPU: enough parts for every multiprocessor, depending on the shape alone, but at
  // least so many elements each, and whole packs of 16 bytes. Parts of columns are joined by one block, so they are fewer.
  int64_t cuda_part() const {
    constexpr int64_t strip = 256;
    const int64_t wanted = inner == 1 ? 1056 : 396, least = inner == 1 ? 4096 : 8192;
    const int64_t width = std::min(inner, strip), units = outer * ((inner + strip - 1) / strip);
    const int64_t parts = std::max<int64_t>(wanted / std::max<int64_t>(units, 1), 1);
    return (std::max((reduced + parts - 1) / parts, least / std::max<int64_t>(width, 1)) + 7) / 8 * 8;
  }
  int64_t cuda_parts() const { return (reduced + cuda_part() - 1) / cuda_part(); }
  int64_t workspace_bytes(Device device) const {  // (outer, parts, inner)
    const bool split = device.kind == Device::Kind::cuda && cuda_parts() > 1;
    return split ? outer * cuda_parts() * inner * static_cast<int64_t>(sizeof(float)) : 0;
  }
};
HEED_KERNEL(fold_forward, FoldForward);

struct FoldBackward {  // of squared deviations and ties
  Fold kind;
  const void* x;           // (outer, reduced, inner)
  const float *about, *g;  // (outer, inner)
  void* dx;                // (outer, reduced, inner)
  int64_t outer, reduced, inner;
  DType dtype;  // of x and dx
};
HEED_KERNEL(fold_backward, FoldBackward);

struct Argmax {          // the first of equal maxima; if there is a NaN, the first NaN
  const void* x;         // (outer, reduced, inner)
  const float* maximum;  // (outer, inner)
  int64_t* y;            // (outer, inner)
  int64_t outer, reduced, inner;
  DType dtype;
};
HEED_KERNEL(argmax_forward, Argmax);

}  // namespace heed
