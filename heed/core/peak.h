// What this machine can do at most, measured: the yardstick for everything that computes.
#pragma once

#include "heed/core/api.h"

namespace HEED_API heed {

// Multiply-adds in registers on all threads, two operations each, per second. Every try takes some milliseconds, in which each thread
// times many short stretches; what other tenants of the machine take away is left out.
double peak_flops(int tries = 15);

}  // namespace heed
