#include "heed/cuda/tensor_map.cuh"

#include <cudaTypedefs.h>

#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

// The driver's function: heed links the runtime only.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result), "tensor maps");
    check(result == cudaDriverEntryPointSuccess && function, "cuda: the driver has no tensor maps");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return encode;
}

CUtensorMap map_of(const MappedTensor& x, uint32_t columns, int rows, CUtensorMapSwizzle swizzle) {
  const auto bytes = [](int64_t size, int64_t stride) { return static_cast<cuuint64_t>(size == 1 ? 16 : 2 * stride); };
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(x.width), static_cast<cuuint64_t>(x.tokens), static_cast<cuuint64_t>(x.heads),
                              static_cast<cuuint64_t>(x.items)};
  const cuuint64_t strides[] = {bytes(x.tokens, x.token), bytes(x.heads, x.head), bytes(x.items, x.item)};
  const cuuint32_t box[] = {columns, static_cast<cuuint32_t>(rows), 1, 1}, steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(x.data), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(status == CUDA_SUCCESS, "cuda: tensor map: error ", static_cast<int>(status));
  return map;
}

}  // namespace

CUtensorMap tile_map(const MappedTensor& x, int rows) { return map_of(x, 64, rows, CU_TENSOR_MAP_SWIZZLE_128B); }
CUtensorMap narrow_map(const MappedTensor& x, int rows) { return map_of(x, 16, rows, CU_TENSOR_MAP_SWIZZLE_32B); }

}  // namespace heed::cuda
