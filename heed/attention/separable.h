// Attention whose map is a product of a map over rows and one over columns of a grid. Position-only Gaussian attention is:
// e^(-a (y^2 + x^2)) = e^(-a y^2) e^(-a x^2), so both softmaxes are exact. N M E products become N (rows + columns) E.
#pragma once

#include "heed/attention/attention.h"

namespace heed {

namespace op {
inline constexpr OpName separable_attention{"separable_attention"};
}

// out[b, h, (y, x)] = sum over (r, c) of rows[h, y, r] columns[h, x, c] v[b, h's, (r, c)]
// rows: (H, Y, R), columns: (H, X, C), v: (B, G, R C, E), H a multiple of G -> (B, H, Y X, E)
Tensor separable_attention(const Tensor& rows, const Tensor& columns, const Tensor& v);

// The same as attention() on N queries with beta = 0 and this one term: N and M must be complete rows of the grid.
Tensor gaussian_attention(const Gaussian2d& term, int64_t N, const Tensor& v);

}  // namespace heed
