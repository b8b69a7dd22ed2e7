// How the CUDA function of a matrix product uses its workspace, depending on the shape alone: launch uses the size, the function the
// offsets.
#pragma once

#include <algorithm>

#include "heed/ops/gemm.h"

namespace heed {

// Products with so few rows are bound by reading b once (gemv.cu). Items of a batch are the second axis of the grid.
inline bool has_few_rows(const Gemm& g) { return g.M <= 8 && g.batch() <= 65535; }

// Few rows times a matrix with dense rows (K, N): blocks share the columns in groups, and K in parts whose sums a second kernel adds.
struct FewRowsParts {
  int64_t columns;  // of a group: 16 bytes for every lane of a warp
  int64_t depth;    // of a part
  int64_t count;    // of parts
};
inline FewRowsParts few_rows_parts(const Gemm& g) {
  constexpr int64_t blocks = 512, least = 64;  // several per multiprocessor; rows of b that are worth a block
  const int64_t columns = g.b.dtype == DType::bf16 || g.packed_b ? 256 : 128;
  const int64_t groups = std::max<int64_t>(1, (g.N + columns - 1) / columns * g.batch());
  const int64_t wanted = std::clamp<int64_t>(blocks / groups, 1, std::max<int64_t>(1, g.K / least));
  const int64_t depth = std::max<int64_t>(1, (g.K + wanted - 1) / wanted);
  return {columns, depth, std::max<int64_t>(1, (g.K + depth - 1) / depth)};
}

struct GemmScratch {
  int64_t a = -1, b = -1, bias = -1;  // where a copy in bf16 is, in bytes; -1: none
  int64_t parts = -1;                 // sums of the parts of few rows: (count, items, M, N) f32
  int64_t bytes = 0;
};

// A copy of an operand in bf16: its matrices, `rows` by `columns` as stored, one after the other, rows padded to 16 bytes.
inline GemmOperand rounded_operand(const Gemm& g, const GemmOperand& x, int64_t rows, int64_t columns, void* to, int64_t* items) {
  GemmOperand out{.data = to, .stride = (columns + 7) / 8 * 8, .transposed = x.transposed, .dtype = DType::bf16};
  *items = 1;
  for (int axis = g.batch_axes - 1; axis >= 0; --axis)
    if (x.batch_stride[axis] != 0) {
      out.batch_stride[axis] = *items * rows * out.stride;
      *items *= g.batch_size[axis];
    }
  return out;
}

inline GemmScratch gemm_scratch(const Gemm& g) {
  GemmScratch out;
  const auto take = [&](int64_t bytes) {
    const int64_t at = out.bytes;
    out.bytes += (bytes + 255) / 256 * 256;
    return at;
  };
  if (g.K == 0 || g.M == 0 || g.N == 0) return out;
  if (has_few_rows(g)) {
    const int64_t parts = g.b.transposed ? 1 : few_rows_parts(g).count;
    if (parts > 1) out.parts = take(parts * g.batch() * g.M * g.N * 4);
    return out;
  }
  const auto copy = [&](const GemmOperand& x, int64_t rows, int64_t columns) {
    int64_t items = 1;
    const int64_t stride = rounded_operand(g, x, rows, columns, nullptr, &items).stride;
    return take(items * rows * stride * 2);
  };
  if (g.in_bf16() && g.a.dtype == DType::f32) out.a = copy(g.a, g.a.transposed ? g.K : g.M, g.a.transposed ? g.M : g.K);
  if (g.in_bf16() && g.b.dtype == DType::f32 && !g.packed_b) out.b = copy(g.b, g.b.transposed ? g.N : g.K, g.b.transposed ? g.K : g.N);
  if (g.bias && !g.narrow_bias && g.c.dtype == DType::bf16) out.bias = take(g.N * 2);
  return out;
}

}  // namespace heed
