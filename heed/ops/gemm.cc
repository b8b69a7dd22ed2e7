#include "heed/ops/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "heed/core/parallel.h"

namespace heed {
namespace {

// Even parts of at most `limit`, rounded up to the rows or columns that a kernel works on at a time.
int64_t part_of(int64_t size, int64_t limit) {
  const int64_t parts = (size + limit - 1) / limit;
  return std::min(size, ((size + parts - 1) / parts + 15) / 16 * 16);
}

}  // namespace

void multiply_matrices(const Products& p) {
  if (p.batch == 0 || p.M == 0 || p.N == 0) return;
  // Wide enough that packing the other operand again for each tile is cheap, small enough to share among many cores.
  const int64_t tile_rows = part_of(p.M, 768), tile_columns = part_of(p.N, p.N >= 1536 ? 384 : 192);
  const int64_t across = (p.N + tile_columns - 1) / tile_columns, tiles = (p.M + tile_rows - 1) / tile_rows * across;
  // Small products share a task.
  const int64_t work = p.M * p.N * std::max<int64_t>(p.K, 1), group = tiles > 1 ? 1 : std::max<int64_t>(1, (int64_t{1} << 19) / work);
  parallel_for(p.batch * tiles, group, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t item = task / tiles, row = task % tiles / across * tile_rows, column = task % across * tile_columns;
      const Tile tile{row, std::min(tile_rows, p.M - row), column, std::min(tile_columns, p.N - column)};
      Matrix a{}, b{}, c{};
      p.operands(item, a, b, c);
      float* to = c.data + row * c.stride + column;
      if (p.K > 0) {
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', tile.rows, tile.columns, p.K, 1.0f,
                   a.data + (a.transposed ? row : row * a.stride), a.stride, b.data + (b.transposed ? column * b.stride : column), b.stride,
                   0.0f, to, c.stride);
      } else {
        for (int64_t i = 0; i < tile.rows; ++i) std::fill_n(to + i * c.stride, tile.columns, 0.0f);
      }
      if (p.after) p.after(item, tile);
    }
  });
}

void multiply_matrices(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c) {
  multiply_matrices({.M = M, .N = N, .K = K, .operands = [&](int64_t, Matrix& x, Matrix& y, Matrix& z) {
                       x = a;
                       y = b;
                       z = c;
                     }});
}

}  // namespace heed
