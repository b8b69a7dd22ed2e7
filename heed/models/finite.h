// Outputs that are NaN or infinite are errors.
#pragma once

#include <span>

#include "heed/core/api.h"
#include "heed/models/model.h"

namespace HEED_API heed {

class NonfiniteOutput : public FileError {
 public:
  NonfiniteOutput(const std::string& text, int64_t which) : FileError(text), item(which) {}

  const int64_t item;  // index in the batch
};

// Throws NonfiniteOutput unless all numbers are finite. out: (B, ...), or (B, N, ...) where item b has lengths[b] tokens before padding
void check_finite(const Model& model, const Tensor& out, std::span<const int64_t> lengths = {});

}  // namespace heed
