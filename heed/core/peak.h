// The measured peak arithmetic of this machine, to which speeds are compared.
#pragma once

#include "heed/core/api.h"

namespace HEED_API heed {

// Operations per second of multiply-adds (two operations each) in registers, on all threads. A try takes a few milliseconds, in which each
// thread times many short intervals, so that interruptions by other programs do not count.
double peak_flops(int tries = 15);

}  // namespace heed
