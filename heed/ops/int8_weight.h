// The weight of a linear layer as int8 with one scale per row.
#pragma once

#include <memory>
#include <vector>

#include "heed/ops/int8_gemm.h"
#include "heed/ops/int8_linear.h"

namespace heed {

class Int8Weight {
 public:
  Int8Weight(int64_t O, int64_t I) : inputs_(I), scales_(static_cast<size_t>(O)) {}

  void pack(const float* weight);  // (O, I)
  int64_t bytes() const;           // after pack
  void multiply(const Int8Linear& args) const;

 private:
  // Blocks of rows, each its own matrix, so that work can be split by outputs too.
  static constexpr int64_t kBlock = 256, kRows = 96;

  int64_t inputs_;
  std::vector<float> scales_;  // (O)
  std::vector<std::unique_ptr<Int8Matrix>> blocks_ = {};
};

}  // namespace heed
