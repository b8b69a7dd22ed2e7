// Recording inside of a NoGrad (autograd.h).
#pragma once

#include "heed/core/api.h"

namespace HEED_API heed {

// While one of these lives, this thread records, also inside of a NoGrad.
class WithGrad {
 public:
  WithGrad();
  ~WithGrad();
  WithGrad(const WithGrad&) = delete;
  WithGrad& operator=(const WithGrad&) = delete;

 private:
  bool before_;
};

}  // namespace heed
