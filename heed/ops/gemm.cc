#include "heed/ops/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <new>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/bf16_gemm.h"
#include "heed/ops/epilogue.h"
#include "heed/ops/gemm_cpu.h"
#include "heed/ops/gemm_scratch.h"
#include "heed/ops/gemv.h"
#include "heed/ops/packed_gemm.h"

namespace heed {
namespace {

// Rows of a from which packing b pays off; sgemm is at its best if b is not transposed.
int64_t rows_worth_packing(bool b_transposed) { return b_transposed ? 64 : 512; }

// The size of the tiles of one product. They are wide, since each task packs its operands again; but a large product has at least four,
// so that threads can share it.
struct TileSize {
  int64_t rows, columns;
};

TileSize tile_size_of(int64_t M, int64_t N, int64_t K) {
  const auto part = [](int64_t size, int64_t limit) {  // equal parts, rounded to what a kernel processes at a time
    const int64_t parts = (size + limit - 1) / limit;
    return std::min(size, ((size + parts - 1) / parts + 15) / 16 * 16);
  };
  int64_t row_limit = M >= 1536 ? 192 : 768, column_limit = M >= 1536 ? 768 : N >= 1536 || M < 16 ? 384 : 192;
  const double work = static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  const int64_t wanted = work >= 0x1p22 ? 4 : 1;
  for (;;) {
    const TileSize cut{part(M, row_limit), part(N, column_limit)};
    const int64_t tiles = ((M + cut.rows - 1) / cut.rows) * ((N + cut.columns - 1) / cut.columns);
    if (tiles >= wanted || (cut.rows <= 48 && cut.columns <= 48)) return cut;
    (cut.rows >= cut.columns ? row_limit : column_limit) = std::max<int64_t>(48, (cut.rows >= cut.columns ? cut.rows : cut.columns) / 2);
  }
}

// For kernels that do not add the bias while c is in registers: everything that is left to do with a tile.
Epilogue bias_and_after(const Products& p) {
  if (!p.bias) return p.after;
  return [&p](int64_t item, const Tile& tile) {
    Matrix a{}, b{}, c{};
    p.operands(item, a, b, c);
    float* at = c.data + tile.row * c.stride + tile.column;
    apply_epilogue({.sums = at,
                    .sums_stride = c.stride,
                    .z = nullptr,
                    .y = at,
                    .stride = c.stride,
                    .bias = p.bias + tile.column,
                    .activation = Activation::none,
                    .rows = tile.rows,
                    .columns = tile.columns});
    if (p.after) p.after(item, tile);
  };
}

Matrix matrix_of(const Gemm& g, const GemmOperand& x, int64_t item) {
  return {static_cast<float*>(x.data) + g.item_offset(x, item), x.stride, x.transposed};
}

// Applies the activation to tiles that hold their bias already. With z, the product is stored there and y only after the activation.
Epilogue activate_tiles(const Gemm& g) {
  if (g.activation == Activation::none) return {};
  return [&g](int64_t item, const Tile& tile) {
    const int64_t offset = g.item_offset(g.c, item) + tile.row * g.c.stride + tile.column;
    float* y = static_cast<float*>(g.c.data) + offset;
    apply_epilogue({.sums = g.z ? static_cast<float*>(g.z) + offset : y,
                    .sums_stride = g.c.stride,
                    .z = nullptr,
                    .y = y,
                    .stride = g.c.stride,
                    .bias = nullptr,
                    .activation = g.activation,
                    .rows = tile.rows,
                    .columns = tile.columns});
  };
}

}  // namespace

void cpu::gemm(const Products& p) {
  if (p.batch == 0 || p.M == 0 || p.N == 0) return;
  Matrix left{}, right{}, out{};
  p.operands(0, left, right, out);
  const Epilogue after = bias_and_after(p);
  if (p.batch == 1 && p.K > 0 && !p.add) {
    const int64_t width = panel_width();
    if (p.K == 1) return outer_product(p.M, p.N, left, right, out, after);
    if (p.M == 1 && width > 0) return gemv(p.N, p.K, left, right, out, after);
    if (p.M >= rows_worth_packing(right.transposed) && width > 0 && !left.transposed) {
      const Tensor panels = Tensor::empty({panel_floats(p.N, p.K)}, kCpu);
      pack_panels(right, p.N, p.K, raw<float>(panels));
      return packed_gemm(p.M, p.N, p.K, left, raw<float>(panels), p.bias, out, p.after);
    }
  }
  const auto [tile_rows, tile_columns] = tile_size_of(p.M, p.N, p.K);
  const int64_t across = (p.N + tile_columns - 1) / tile_columns, tiles = (p.M + tile_rows - 1) / tile_rows * across;
  // Small products share a task.
  const int64_t work = p.M * p.N * std::max<int64_t>(p.K, 1), group = tiles > 1 ? 1 : std::max<int64_t>(1, (int64_t{1} << 19) / work);
  parallel_for(p.batch * tiles, group, [&, tile_rows = tile_rows, tile_columns = tile_columns](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t item = task / tiles, row = task % tiles / across * tile_rows, column = task % across * tile_columns;
      const Tile tile{row, std::min(tile_rows, p.M - row), column, std::min(tile_columns, p.N - column)};
      Matrix a{}, b{}, c{};
      p.operands(item, a, b, c);
      float* to = c.data + row * c.stride + column;
      if (p.K > 0) {
        const dnnl_status_t done =
            dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', tile.rows, tile.columns, p.K, 1.0f,
                       a.data + (a.transposed ? row : row * a.stride), a.stride, b.data + (b.transposed ? column * b.stride : column),
                       b.stride, p.add ? 1.0f : 0.0f, to, c.stride);
        if (done == dnnl_out_of_memory) throw std::bad_alloc();
        check(done == dnnl_success, "matrix product: oneDNN refused one of ", tile.rows, " x ", p.K, " x ", tile.columns, " (status ",
              static_cast<int>(done), ")");
      } else if (!p.add) {
        for (int64_t i = 0; i < tile.rows; ++i) std::fill_n(to + i * c.stride, tile.columns, 0.0f);
      }
      if (after) after(item, tile);
    }
  });
}

void cpu::gemm(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, bool add) {
  gemm({.M = M,
        .N = N,
        .K = K,
        .operands =
            [&](int64_t, Matrix& x, Matrix& y, Matrix& z) {
              x = a;
              y = b;
              z = c;
            },
        .add = add});
}

void cpu::gemm(const Gemm& g) {
  if (g.batch() == 0 || g.M == 0 || g.N == 0) return;
  if (!g.bias && g.narrow_bias) {
    std::vector<float> bias;
    for (int64_t n = 0; n < g.N; ++n) bias.push_back(to_float(g.narrow_bias[n]));
    Gemm widened = g;
    widened.bias = bias.data();
    return gemm(widened);
  }
  if (g.in_bf16()) return gemm_bf16(g);
  const Epilogue after = activate_tiles(g);
  GemmOperand c = g.c;
  if (after && g.z) c.data = g.z;
  if (g.packed_b) {
    return packed_gemm(g.M, g.N, g.K, matrix_of(g, g.a, 0), static_cast<const float*>(g.packed_b), g.bias, matrix_of(g, c, 0), after);
  }
  gemm({.batch = g.batch(),
        .M = g.M,
        .N = g.N,
        .K = g.K,
        .operands =
            [&](int64_t item, Matrix& x, Matrix& y, Matrix& z) {
              x = matrix_of(g, g.a, item);
              y = matrix_of(g, g.b, item);
              z = matrix_of(g, c, item);
            },
        .bias = g.bias,
        .after = after,
        .add = g.add});
}

int64_t Gemm::workspace_bytes(Device device) const { return device.kind == Device::Kind::cpu ? 0 : gemm_scratch(*this).bytes; }

int64_t packed_gemm_bytes(Device device, int64_t N, int64_t K, DType dtype) {
  if (cuda::computing_device(device) != kCpu) return dtype == DType::bf16 ? N * K * 2 : 0;
  return dtype == DType::bf16 ? N * K * 2 : panel_width() > 0 ? panel_floats(N, K) * 4 : 0;
}

void cpu::pack_gemm(const PackGemm& p) {
  const Matrix b{static_cast<float*>(p.b.data), p.b.stride, p.b.transposed};
  if (p.dtype == DType::bf16) return round_matrix(b, b.transposed ? p.N : p.K, b.transposed ? p.K : p.N, static_cast<Bf16*>(p.packed));
  pack_panels(b, p.N, p.K, static_cast<float*>(p.packed));
}

}  // namespace heed
