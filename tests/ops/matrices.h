// Matrices for the tests of products: transposed or not, with or without gaps between their rows.
#pragma once

#include <vector>

#include "heed/ops/gemm_cpu.h"
#include "tests/ops/cases.h"

namespace heed::test {

// A (rows, columns) matrix of normal numbers, `gap` more than a row (or, transposed, a column) apart.
struct Filled {
  Filled(int64_t rows, int64_t columns, bool is_transposed, int64_t gap, uint64_t seed)
      : stride((is_transposed ? rows : columns) + gap),
        transposed(is_transposed),
        values(normal_input({is_transposed ? columns : rows, stride}, seed).to_vector<float>()) {}
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(transposed ? column * stride + row : row * stride + column)];
  }
  Matrix matrix() { return {values.data(), stride, transposed}; }

  int64_t stride;
  bool transposed;
  std::vector<float> values;
};

}  // namespace heed::test
