// Where a tensor's data is stored. The kinds are known when heed is built.
#pragma once

#include <cstdint>
#include <string>

#include "heed/core/api.h"

// Marks functions that CUDA kernels call too.
#ifdef __CUDACC__
#define HEED_HOST_DEVICE __host__ __device__
#else
#define HEED_HOST_DEVICE
#endif

namespace HEED_API heed {

// The CPU, or the GPU number `index`.
struct Device {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int8_t index = 0;

  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{};  // the CPU

// Where models are created by default: the CPU, until a program sets another device.
Device default_device();
void set_default_device(Device device);
// "cpu", "cuda", "cuda:1", or "auto": the first GPU if there is one. Anything else, or a GPU that does not exist, is a UsageError.
Device device_named(const std::string& name);

inline std::string name_of(Device device) {  // "cpu", "cuda:0"
  return device.kind == Device::Kind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace heed
