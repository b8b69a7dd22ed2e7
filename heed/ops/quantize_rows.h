// Quantizes rows of floats to int8 with one scale per row: x is about scale * byte.
#pragma once

#include <cstdint>

namespace heed {

struct RowPeak {
  float peak, square;  // the largest absolute value of a row, and the mean of squares
};

// The largest number of a row becomes `most`, at most 127. x: (rows, columns) dense -> bytes: (rows, columns), scales: (rows)
void quantize_rows(const float* x, int64_t rows, int64_t columns, float most, int8_t* bytes, float* scales);

// The same with a second, finer row where needed: if one element of a row is far larger than the others, as in trained transformers
// (Dettmers et al. 2022), another row of bytes, stored after all first rows, has the quantization error of the first.
struct SplitRows {
  int8_t* bytes;    // (2 rows, columns), of which `count` are used
  float* scales;    // (2 rows)
  int64_t* second;  // (rows): where the second row is, or -1
  int64_t count;
};
// One thread. most: 127
void quantize_split_rows(const float* x, int64_t rows, int64_t columns, SplitRows& out);

// to = sums of the scaled rows times column_scales. sums: (count, columns) dense, to: (rows, columns) with rows `stride` apart
void scale_tile(const float* sums, const SplitRows& scaled, const float* column_scales, int64_t rows, int64_t columns, float* to,
                int64_t stride);

}  // namespace heed
