// Matrix products whose right matrix lies in panels: as many columns side by side as a few registers hold, a row after the
// other. Laid out once it serves many products; for tall left matrices it pays even for one.
#pragma once

#include "heed/ops/gemm.h"

namespace heed {

int64_t panel_width();  // in columns; 0: without vectors oneDNN is faster

// How many floats the panels of a (K, N) matrix take: the last panel is as wide as the others, with zeros behind b.
int64_t panel_floats(int64_t N, int64_t K);
void pack_panels(const Matrix& b, int64_t N, int64_t K, float* panels);  // b: (K, N)

// c = a b + bias. a: (M, K) not transposed, bias: (N) or null, c: (M, N) not transposed. `after` sees each few rows while they are
// in the first cache.
void packed_gemm(int64_t M, int64_t N, int64_t K, const Matrix& a, const float* panels, const float* bias, const Matrix& c,
                 const Epilogue& after = {});

}  // namespace heed
