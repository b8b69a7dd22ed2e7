#include "heed/core/kernel.h"

#include "heed/core/check.h"

namespace heed {

void no_cuda(const char* kernel) { fail(kernel, ": this build of heed has no CUDA"); }

}  // namespace heed
