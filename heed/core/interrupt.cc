#include "heed/core/interrupt.h"

#include "heed/core/check.h"

namespace heed {
namespace {

thread_local const std::function<bool()>* innermost_stop = nullptr;

}  // namespace

Interruptible::Interruptible(const std::function<bool()>& stop) : before_(innermost_stop) { innermost_stop = stop ? &stop : before_; }
Interruptible::~Interruptible() { innermost_stop = before_; }

void check_interrupt() {
  if (innermost_stop != nullptr && (*innermost_stop)()) [[unlikely]]
    throw StoppedError("interrupted");
}

}  // namespace heed
