#include "heed/core/interrupt.h"

#include "heed/core/check.h"

namespace heed {
namespace {

thread_local const std::function<bool()>* innermost_stop = nullptr;
thread_local bool innermost_at_once = true;

}  // namespace

Interruptible::Interruptible(const std::function<bool()>& stop, bool at_once)
    : before_(innermost_stop), at_once_before_(innermost_at_once) {
  if (!stop) return;
  innermost_stop = &stop;
  innermost_at_once = at_once;
}
Interruptible::~Interruptible() {
  innermost_stop = before_;
  innermost_at_once = at_once_before_;
}

bool interrupt_requested() { return innermost_stop != nullptr && (*innermost_stop)(); }

void check_interrupt() {
  if (innermost_at_once && interrupt_requested()) [[unlikely]]
    throw StoppedError("interrupted");
}

}  // namespace heed
