#include "heed/dist/split_work.h"

#include <algorithm>

#include "heed/core/interrupt.h"

namespace heed {

void split_work(Group& group, int64_t count, const std::function<std::string(int64_t part)>& compute,
                const std::function<void(int64_t part, const std::string& result)>& take) {
  for (int64_t first = 0; first < count; first += group.size()) {
    if (group.size() == 1) {
      take(first, compute(first));
      continue;
    }
    const bool stop = interrupt_requested();
    const std::string own = !stop && first + group.rank() < count ? compute(first + group.rank()) : "";
    const std::vector<std::string> all = group.all_gather((stop ? "1" : "0") + own);
    check<StoppedError>(std::all_of(all.begin(), all.end(), [](const std::string& each) { return each[0] == '0'; }), "interrupted");
    for (int64_t part = first; part < std::min(count, first + group.size()); ++part)
      take(part, all[static_cast<size_t>(part - first)].substr(1));
  }
}

bool any_of(Group& group, bool value) {
  const std::vector<std::string> all = group.all_gather(value ? "1" : "0");
  return std::find(all.begin(), all.end(), "1") != all.end();
}

}  // namespace heed
