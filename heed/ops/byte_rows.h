// Rows of floats as bytes with a scale each: x is about scale * byte.
#pragma once

#include <cstdint>

namespace heed {

// The largest number of a row becomes `most`, at most 127. x: (rows, columns) dense -> bytes: (rows, columns), scales: (rows)
void rows_to_bytes(const float* x, int64_t rows, int64_t columns, float most, int8_t* bytes, float* scales);

// to = from row_scales column_scales. from: (rows, columns) dense, to: the same with rows `stride` apart
void scale_tile(const float* from, const float* row_scales, const float* column_scales, int64_t rows, int64_t columns, float* to,
                int64_t stride);

}  // namespace heed
