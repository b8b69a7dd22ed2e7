// Matrix products whose right matrix is packed into panels: as many columns as a few registers hold, row after row. Packing pays off if the
// matrix is used several times, and for tall left matrices even within one product.
#pragma once

#include "heed/ops/gemm_cpu.h"

namespace heed {

int64_t panel_width();  // in columns; 0: without vectors oneDNN is faster

// How many floats the panels of a (K, N) matrix take: the last panel is as wide as the others, padded with zeros.
int64_t panel_floats(int64_t N, int64_t K);
void pack_panels(const Matrix& b, int64_t N, int64_t K, float* panels);  // b: (K, N)

// c = a b + bias. a: (M, K) not transposed, bias: (N) or null, c: (M, N) not transposed. `after` is called for a few rows at a time, while
// they are in the first-level cache.
void packed_gemm(int64_t M, int64_t N, int64_t K, const Matrix& a, const float* panels, const float* bias, const Matrix& c,
                 const Epilogue& after = {});

}  // namespace heed
