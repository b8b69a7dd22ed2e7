// Interruption of long work, such as an evaluation, by Ctrl-C.
#pragma once

#include <functional>

#include "heed/core/api.h"

namespace HEED_API heed {

// While an object of this class exists, work that this thread gives to the thread pool throws a StoppedError as soon as stop() is true.
// Only the innermost object is used; one with an empty function has no effect.
class Interruptible {
 public:
  explicit Interruptible(const std::function<bool()>& stop);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::function<bool()>* before_;
};

void check_interrupt();  // throws if stop() of the innermost Interruptible of this thread is true

}  // namespace heed
