// Arguments of the separable attention kernels (separable.h). Read by g++ and nvcc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/attention/score_block.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace heed {

struct SeparableSizes {
  int64_t B, H, G, Y, R, X, C;  // as in separable.h
  int64_t E, width;             // of values, and padded as padded_width() says

  // Value columns of a task, of which there are as many for every head, or key head: wide enough to be read well, narrow enough for the
  // second cache, and tasks for all threads.
  int64_t slice(int64_t heads) const {
    const int64_t wanted = std::max((width + 255) / 256, (16 + B * heads - 1) / std::max<int64_t>(B * heads, 1));
    return std::max<int64_t>(16, (width / std::max<int64_t>(wanted, 1) + 15) / 16 * 16);
  }
  int64_t slices(int64_t heads) const { return (width + slice(heads) - 1) / slice(heads); }

  int64_t joined_rows() const { return B * H * Y * C * width; }  // values joined by rows, of all heads

  int64_t multiply_adds(int64_t row_products, int64_t column_products) const {
    return B * H * E * Y * C * (row_products * R + column_products * X);
  }
};

// What the CUDA kernels for small grids in bf16 (separable_tiles.cuh) take.
struct SeparableTiles {
  static constexpr int64_t kSide = 16, kColumns = 32;  // the largest grid, and the value columns of a block
  static constexpr int64_t kMapBytes = 4 * 512;        // of a head: both maps and their transposes, as operands of tensor cores

  static bool can_read(const TokenRows& x) {
    return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.item % 8 == 0 && x.head % 8 == 0 && x.token % 8 == 0;
  }
  static bool fit(const SeparableSizes& z, DType dtype) {
    return dtype == DType::bf16 && std::max({z.Y, z.R, z.X, z.C}) <= kSide && z.E % 8 == 0;
  }
  static int64_t slices(const SeparableSizes& z) { return (z.E + kColumns - 1) / kColumns; }
  // A block of backward adds the gradients of the maps over this many items.
  static int64_t items(const SeparableSizes& z) { return std::clamp<int64_t>(z.B * z.G / 128, 1, 4); }
  static int64_t parts(const SeparableSizes& z) { return slices(z) * ((z.B + items(z) - 1) / items(z)); }
};

struct SeparableForward {
  SeparableSizes sizes;
  const float *rows, *columns;  // (H, Y, R), (H, X, C)
  TokenRows v, out;             // (B, G, R C, width), (B, H, Y X, E)
  DType dtype;                  // of v and out; bf16 values have E columns
  void* workspace = nullptr;    // on GPUs: maps as operands, or values joined by rows, (B H, Y, C, width)

  bool in_tiles() const { return SeparableTiles::fit(sizes, dtype) && SeparableTiles::can_read(v) && SeparableTiles::can_read(out); }
  int64_t multiply_adds() const { return sizes.multiply_adds(1, 1); }  // values are joined by rows, then by columns
  int64_t workspace_bytes(Device device) const {
    if (device.kind == Device::Kind::cpu) return 0;
    return in_tiles() ? sizes.H * SeparableTiles::kMapBytes : sizes.joined_rows() * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(separable_forward, SeparableForward);

struct SeparableBackward {
  SeparableSizes sizes;
  const float *rows, *columns;        // (H, Y, R), (H, X, C)
  TokenRows v, g, dv;                 // (B, G, R C, width), (B, H, Y X, width), (B, G, R C, E)
  DType dtype;                        // of v, g and dv; bf16 values and gradients have E columns
  float *drows = {}, *dcolumns = {};  // (parts, H, Y, R), (parts, H, X, C): to be summed over parts
  void* workspace = nullptr;          // on GPUs: maps as operands, or values joined by rows, and their gradient

  bool in_tiles() const {
    return SeparableTiles::fit(sizes, dtype) && SeparableTiles::can_read(v) && SeparableTiles::can_read(g) && SeparableTiles::can_read(dv);
  }
  int64_t parts(Device device) const {
    return device.kind != Device::Kind::cpu && in_tiles() ? SeparableTiles::parts(sizes) : sizes.slices(sizes.G) * sizes.B;
  }
  int64_t multiply_adds() const { return sizes.multiply_adds(3, 2); }  // the first product once more
  int64_t workspace_bytes(Device device) const {
    if (device.kind == Device::Kind::cpu) return 0;
    return in_tiles() ? sizes.H * SeparableTiles::kMapBytes : 2 * sizes.joined_rows() * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(separable_backward, SeparableBackward);

}  // namespace heed
