// GPUs for the rest of heed. No CUDA headers here: g++ reads it. The work is done by the driver (driver.cu; no_driver.cc in builds without
// CUDA) or by the emulation.
#pragma once

#include "heed/core/api.h"
#include "heed/cuda/driver.h"

namespace HEED_API heed {
namespace cuda {

int device_count();  // 0 where there is no driver or no GPU
DeviceInfo device_info(int index);

void synchronize(int index);  // waits for the device's work

std::byte* allocate(int64_t bytes, int index);  // null if the device has too little memory
void release(std::byte* block, int index);

// Around the start of a kernel.
class OnDevice {
 public:
  explicit OnDevice(int index);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

// Whose functions compute for a device: its own, but the CPU's where CUDA is emulated. Decides how data is laid out for kernels.
Device computing_device(Device device);

}  // namespace cuda
}  // namespace heed
