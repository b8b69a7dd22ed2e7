// Outputs that are not numbers are errors, never answers.
#pragma once

#include <span>

#include "heed/models/model.h"

namespace heed {

// A model gave NaN or infinity.
class NonfiniteOutput : public FileError {
 public:
  NonfiniteOutput(const std::string& text, int64_t which) : FileError(text), item(which) {}

  const int64_t item;  // of the batch that it was given
};

// An error unless all numbers are finite. out: (B, ...), or (B, N, ...), of which item b has lengths[b] tokens that count
void check_finite(const Model& model, const Tensor& out, std::span<const int64_t> lengths = {});

}  // namespace heed
