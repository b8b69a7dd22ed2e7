// Token sequences of different lengths as one tensor.
#pragma once

#include <span>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

// The chosen rows, padded at the end with `filler`: (B, N) i64.
Tensor padded_rows(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> which, int64_t filler);
// 1 for their tokens, 0 for padding: (B, N) i64.
Tensor padding_mask(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> which);

}  // namespace heed
