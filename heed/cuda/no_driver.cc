// GPUs of a build without CUDA: none.
#include "heed/core/check.h"
#include "heed/cuda/driver.h"
#include "heed/cuda/no_cuda.h"

namespace heed::cuda {

void no_cuda(const char* kernel) { fail(kernel, ": this build of heed has no CUDA"); }

namespace driver {

int device_count() { return 0; }
DeviceInfo device_info(int) { no_cuda("device"); }
void use_device(int index) { fail("device cuda:", index, ": this build of heed has no CUDA; the device must be cpu"); }
void synchronize() {}
std::byte* allocate(int64_t) { no_cuda("memory"); }
void release(std::byte*) {}
void begin_capture() { no_cuda("graph"); }
void* end_capture() { no_cuda("graph"); }
void run_graph(void*) { no_cuda("graph"); }
void destroy_graph(void*) {}
void set_profiling(bool) {}

}  // namespace driver
}  // namespace heed::cuda
