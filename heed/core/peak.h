// What this machine can do at most, measured: the yardstick for everything that computes.
#pragma once

namespace heed {

// Multiply-adds in registers on all threads, two operations each, per second. The best of so many tries, each some milliseconds: other
// tenants of the machine only ever slow it down.
double peak_flops(int tries = 15);

}  // namespace heed
