// Long work that can be interrupted: a person pressed Ctrl-C while a model is evaluated.
#pragma once

#include <functional>

#include "heed/core/api.h"

namespace HEED_API heed {

// While one of these lives, work that this thread hands to the pool throws a StoppedError as soon as stop() is true. The innermost one
// counts; one with an empty function changes nothing.
class Interruptible {
 public:
  explicit Interruptible(const std::function<bool()>& stop);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::function<bool()>* before_;
};

void check_interrupt();  // throws where the innermost Interruptible of this thread says so

}  // namespace heed
