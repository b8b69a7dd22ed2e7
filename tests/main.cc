// Runs the tests. With HEED_TEST_DEVICE they are those of ops, attention, layers and model fixtures, which compute on that device; with
// HEED_TEST_FOLDERS those in these folders of tests/, separated by commas.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace {

// Tests that compute on HEED_TEST_DEVICE.
constexpr const char* kForEveryDevice = "ops/,attention/,nn/,models/parity_test.cc,models/token_steps_test.cc";

bool is_in(const std::string& file, const std::string& places) {
  std::istringstream all(places);
  for (std::string place; std::getline(all, place, ',');)
    if (file.find("tests/" + place) != std::string::npos) return true;
  return false;
}

// The names of all tests in these folders and files, as a filter. Those that measure time are left out.
std::string filter_of(const std::string& places) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (is_in(test.file(), places)) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter + "-Timing.*";
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  const char* const places = std::getenv("HEED_TEST_DEVICE") ? kForEveryDevice : std::getenv("HEED_TEST_FOLDERS");
  if (places && testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = filter_of(places);
  return RUN_ALL_TESTS();
}
