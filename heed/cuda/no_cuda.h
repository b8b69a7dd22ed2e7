// Called by the CUDA functions of a build without CUDA, which cmake/kernels.cmake writes.
#pragma once

namespace heed::cuda {

[[noreturn]] void no_cuda(const char* kernel);

}  // namespace heed::cuda
