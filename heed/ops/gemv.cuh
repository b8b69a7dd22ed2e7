// Products of few rows, as in decoding: they are bound by reading b, which is read once, in storage order, 16 bytes at a time.
#pragma once

#include "heed/ops/gemm.h"

namespace heed::cuda {

// has_few_rows(g) and K > 0. Operands may have different types; packed_b is not looked at. parts: gemm_scratch's, or null
void multiply_few_rows(const Gemm& g, float* parts);

}  // namespace heed::cuda
