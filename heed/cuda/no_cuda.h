// Called by the CUDA functions of a build without CUDA, which cmake/kernels.cmake writes.
#pragma once

#include "heed/core/api.h"

namespace HEED_API heed {
namespace cuda {

[[noreturn]] void no_cuda(const char* kernel);

}  // namespace cuda
}  // namespace heed
