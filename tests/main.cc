// Runs the tests. With HEED_TEST_DEVICE they are those of ops, attention, layers and model fixtures, which compute on that device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

bool is_for_every_device(const std::string& file) {
  for (const char* const part : {"tests/ops/", "tests/attention/", "tests/nn/", "tests/models/parity_test.cc"})
    if (file.find(part) != std::string::npos) return true;
  return false;
}

// The names of all tests for every device, as a filter.
std::string device_filter() {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (is_for_every_device(test.file())) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (std::getenv("HEED_TEST_DEVICE") && testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = device_filter();
  return RUN_ALL_TESTS();
}
