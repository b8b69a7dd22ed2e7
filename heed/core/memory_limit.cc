#include "heed/core/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>

#include "heed/core/memory.h"
#include "heed/cuda/runtime.h"

namespace heed {

int64_t memory_limit() {
  int64_t limit = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream group("/sys/fs/cgroup/memory.max");
  int64_t allowed = 0;
  if (group >> allowed && allowed > 0) limit = std::min(limit, allowed);
  return limit;
}

bool has_room_to_save(Device device) {
  if (device == kCpu) return false;
  static std::mutex mutex;
  static std::map<int, int64_t> sizes;  // of the memory of devices
  const std::lock_guard lock(mutex);
  auto size = sizes.find(device.index);
  if (size == sizes.end()) size = sizes.emplace(device.index, cuda::device_info(device.index).memory).first;
  return memory_use(device).in_use <= size->second / 2;
}

}  // namespace heed
