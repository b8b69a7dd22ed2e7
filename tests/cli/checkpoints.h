// The checkpoints of a run that is being trained.
#pragma once

#include <algorithm>

#include "heed/core/parse.h"
#include "heed/io/file.h"

namespace heed::test {

// The step of the newest checkpoint; 0: there is none. Older ones are removed, so waiting for one of them may miss it.
inline int64_t newest_step(const Path& run) {
  int64_t newest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator each(run / "checkpoints", error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename();  // step-0000012.safetensors
    if (name.starts_with("step-")) newest = std::max(newest, parse_number<int64_t>(name.substr(5, name.find('.') - 5)).value_or(0));
  }
  return newest;
}

}  // namespace heed::test
