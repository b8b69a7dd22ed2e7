#include "heed/core/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace heed {

int64_t memory_limit() {
  int64_t limit = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream group("/sys/fs/cgroup/memory.max");
  int64_t allowed = 0;
  if (group >> allowed && allowed > 0) limit = std::min(limit, allowed);
  return limit;
}

}  // namespace heed
