#include "tests/test_device.h"

#include <gtest/gtest.h>

namespace heed::test {
namespace {

// Models and layers of tests are created on that device.
struct DefaultDevice : testing::Environment {
  void SetUp() override { set_default_device(test_device()); }
};
const testing::Environment* const default_device_environment = testing::AddGlobalTestEnvironment(new DefaultDevice);

}  // namespace
}  // namespace heed::test
