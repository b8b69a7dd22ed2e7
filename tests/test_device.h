// The device of tests of ops, terms and models: HEED_TEST_DEVICE, by default the CPU.
#pragma once

#include <cstdlib>

#include "heed/core/device.h"

namespace heed::test {

inline Device test_device() {
  static const Device device = [] {
    const char* const name = std::getenv("HEED_TEST_DEVICE");
    return name ? device_named(name) : kCpu;
  }();
  return device;
}

}  // namespace heed::test
