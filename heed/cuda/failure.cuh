// Errors that kernels detect. A kernel cannot throw and runs asynchronously, so the first error is stored in memory shared by host and
// device, and thrown when the host next copies a result. Until then other kernels run on the bad values and must not crash.
#pragma once

#include <cstdint>

#include "heed/core/shape.h"

namespace heed::cuda {

struct IndexFailure {  // an index outside [0, bound)
  const char* op;      // null: nothing is wrong
  int64_t index, bound, place;
  int rank;
  int64_t shape[kMaxRank];  // of the indices
};

IndexFailure* index_failure();  // one for all devices
void throw_failure();           // after synchronization, if there is a failure; forgets it

}  // namespace heed::cuda
