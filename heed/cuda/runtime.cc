#include "heed/cuda/runtime.h"

#include "heed/core/check.h"
#include "heed/core/memory_limit.h"
#include "heed/cuda/emulation.h"

namespace heed::cuda {
namespace {

void use_device(int index) {
  if (!emulation::is_on()) return driver::use_device(index);
  check(index == 0, "device cuda:", index, ": the emulated device is cuda:0");
}

}  // namespace

int device_count() { return emulation::is_on() ? 1 : driver::device_count(); }

DeviceInfo device_info(int index) {
  use_device(index);
  if (!emulation::is_on()) return driver::device_info(index);
  const int64_t memory = memory_limit();
  return {.name = "emulated by the CPU", .memory = memory, .free_memory = memory, .multiprocessors = 1, .major = 0, .minor = 0};
}

void synchronize(int index) {
  use_device(index);
  if (!emulation::is_on()) driver::synchronize();
}

std::byte* allocate(int64_t bytes, int index) {
  use_device(index);
  return emulation::is_on() ? emulation::allocate(bytes) : driver::allocate(bytes);
}

void release(std::byte* block, int index) {
  use_device(index);
  if (!emulation::is_on()) driver::release(block);
}

OnDevice::OnDevice(int index) {
  use_device(index);
  if (emulation::is_on()) emulation::allow_access();
}

OnDevice::~OnDevice() {
  if (emulation::is_on()) emulation::forbid_access();
}

Device computing_device(Device device) { return emulation::is_on() ? kCpu : device; }

}  // namespace heed::cuda
