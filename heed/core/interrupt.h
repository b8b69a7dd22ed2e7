// Interruption of long work, such as an evaluation, by Ctrl-C.
#pragma once

#include <functional>

#include "heed/core/api.h"

namespace HEED_API heed {

// While an object of this class exists, work that this thread gives to the thread pool throws a StoppedError as soon as stop() is true.
// Only the innermost object is used; one with an empty function has no effect. at_once = false: nothing is thrown, and the work calls
// interrupt_requested() where several processes can stop together.
class Interruptible {
 public:
  explicit Interruptible(const std::function<bool()>& stop, bool at_once = true);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::function<bool()>* before_;
  bool at_once_before_;
};

bool interrupt_requested();  // whether stop() of the innermost Interruptible of this thread is true
void check_interrupt();      // throws then, unless at_once is false

}  // namespace heed
