// Long work that can be interrupted: a person pressed Ctrl-C while a model is evaluated.
#pragma once

#include <functional>

namespace heed {

// While one of these lives, work that this thread hands to the pool throws a StoppedError as soon as stop() is true. The innermost one
// counts; one with an empty function changes nothing. at_once = false: nothing is thrown, and the work itself asks interrupt_requested()
// where several processes can end it together.
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

bool interrupt_requested();  // whether the innermost Interruptible of this thread says so
void check_interrupt();      // throws then, unless it says not to do so at once

}  // namespace heed
