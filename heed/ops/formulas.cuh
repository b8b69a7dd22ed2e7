// The formulas of elementwise.h on floats, for CUDA kernels that apply them.
#pragma once

#include "heed/cuda/formulas.cuh"
#include "heed/ops/activation.h"
#include "heed/ops/elementwise.h"

namespace heed::cuda::formulas {

#define HEED_FORMULAS
#define HEED_INLINE __device__ __forceinline__
#define HEED_VISITOR HEED_HOST_DEVICE
#include "heed/ops/elementwise.h"
// after elementwise.h
#include "heed/ops/activation_formulas.h"
#undef HEED_VISITOR
#undef HEED_INLINE
#undef HEED_FORMULAS

}  // namespace heed::cuda::formulas
