// Matrix products of bf16 operands with f32 sums, by oneDNN. Operands stored as f32 are rounded first (Kalamkar et al. 2019).
#pragma once

#include "heed/core/api.h"
#include "heed/ops/gemm_cpu.h"

namespace HEED_API heed {

bool has_bf16();  // whether this machine has bf16 instructions; without them the same rounded numbers are multiplied in f32

void gemm_bf16(const Gemm& gemm);

// rows, columns: as stored -> to: (rows, columns) dense
void round_matrix(const Matrix& from, int64_t rows, int64_t columns, Bf16* to);

}  // namespace heed
