// Arguments of the matrix product: activation(a b + bias) for one or many pairs of matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/ops/activation.h"

namespace heed {

inline constexpr int kMaxBatchAxes = 6;

// Element (row, column) is data[row * stride + column], or data[column * stride + row] if transposed.
struct GemmOperand {
  void* data;
  int64_t stride;
  bool transposed = false;
  DType dtype = DType::f32;                  // or bf16
  int64_t batch_stride[kMaxBatchAxes] = {};  // 0: broadcast
};

// If a or b is bf16, the other one is rounded to bf16 as well; sums, bias and activation are f32 in any case.
struct Gemm {
  int64_t M, N, K;
  GemmOperand a, b, c;  // (M, K), (K, N), (M, N); c is not transposed
  int batch_axes = 0;
  int64_t batch_size[kMaxBatchAxes] = {};  // the outermost axis first
  const float* bias = nullptr;             // (N), added to every row
  const Bf16* narrow_bias = nullptr;       // (N): the same rounded, which spares CUDA rounding it; alone, it is added instead
  Activation activation = Activation::none;
  void* z = nullptr;               // stored like c: the result before the activation, or null
  bool add = false;                // c += a b; without bias and activation
  const void* packed_b = nullptr;  // b packed by pack_gemm, or null
  void* workspace = nullptr;       // layout: gemm_scratch.h

  HEED_HOST_DEVICE bool in_bf16() const { return a.dtype == DType::bf16 || b.dtype == DType::bf16; }
  HEED_HOST_DEVICE int64_t batch() const {
    int64_t items = 1;
    for (int axis = 0; axis < batch_axes; ++axis) items *= batch_size[axis];
    return items;
  }
  // Where the matrix of one product starts, in elements.
  HEED_HOST_DEVICE int64_t item_offset(const GemmOperand& x, int64_t item) const {
    int64_t offset = 0;
    for (int axis = batch_axes - 1; axis >= 0; --axis) {
      offset += item % batch_size[axis] * x.batch_stride[axis];
      item /= batch_size[axis];
    }
    return offset;
  }
  int64_t multiply_adds() const { return batch() * M * N * K; }
  int64_t workspace_bytes(Device device) const;  // none on the CPU
};
HEED_KERNEL(gemm, Gemm);

// b in the layout that the device multiplies fastest, for several products with the same b.
struct PackGemm {
  GemmOperand b;  // (K, N), f32
  int64_t N, K;
  void* packed;  // packed_gemm_bytes
  DType dtype;   // of the products: f32 or bf16
};
HEED_KERNEL(pack_gemm, PackGemm);

int64_t packed_gemm_bytes(Device device, int64_t N, int64_t K, DType dtype);  // 0: this device has no such layout

}  // namespace heed
