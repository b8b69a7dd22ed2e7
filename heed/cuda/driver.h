// The same functions for real GPUs; only runtime.cc calls them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {
namespace cuda {

struct DeviceInfo {
  std::string name;
  int64_t memory, free_memory;  // bytes
  int multiprocessors;
  int major, minor;  // compute capability
};

namespace driver {

int device_count();
DeviceInfo device_info(int index);
void use_device(int index);  // where the calling thread's kernels run from now on
void synchronize();          // the device in use
std::byte* allocate(int64_t bytes);
void release(std::byte* block);

// CUDA graphs of the device in use. Between begin and end, launches of the calling thread are recorded instead of run.
void begin_capture();
void* end_capture();  // null if the recording failed
void run_graph(void* graph);
void destroy_graph(void* graph);

void set_profiling(bool on);  // what profilers record that are started with profiling off

}  // namespace driver
}  // namespace cuda
}  // namespace heed
