#include "heed/core/device.h"

#include <atomic>
#include <bit>
#include <charconv>

#include "heed/core/check.h"
#include "heed/cuda/runtime.h"

namespace heed {
namespace {

// As bits: clang calls a library for atomic structs.
std::atomic<uint16_t> chosen{std::bit_cast<uint16_t>(kCpu)};

}  // namespace

Device default_device() { return std::bit_cast<Device>(chosen.load()); }
void set_default_device(Device device) { chosen = std::bit_cast<uint16_t>(device); }

Device device_named(const std::string& name) {
  if (name == "cpu") return kCpu;
  const int count = cuda::device_count();
  if (name == "auto") return count > 0 ? Device{Device::Kind::cuda, 0} : kCpu;
  int index = 0;
  bool known = name == "cuda";
  if (name.starts_with("cuda:")) {
    const char *const first = name.data() + 5, *const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(first, last, index);
    known = error == std::errc() && end == last && index >= 0;
  }
  check<UsageError>(known, "device '", name, "' is not known, expected auto, cpu, cuda or cuda:NUMBER");
  check<UsageError>(index < count, "device ", name, ": this machine has ", count, count == 1 ? " CUDA device" : " CUDA devices",
                    count == 0 ? " that heed can use; see `heed devices`" : "");
  return {Device::Kind::cuda, static_cast<int8_t>(index)};
}

}  // namespace heed
