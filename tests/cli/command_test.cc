// How the program ends when a command fails: commands of our own that fail in every way there is.
#include "heed/cli/command.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "heed/cli/run.h"
#include "heed/core/check.h"

namespace heed::cli {
namespace {

template <class Thrown>
Command::Setup failing(const Thrown& thrown) {
  return [thrown](Flags&) { return [thrown] { throw thrown; }; };
}

const Command usage("test-usage", "", failing(UsageError("u")));
const Command file("test-file", "", failing(FileError("f")));
const Command diverged("test-diverged", "", failing(DivergedError("d")));
const Command plain("test-plain", "", failing(Error("p")));
const Command memory("test-memory", "", failing(std::bad_alloc()));
const Command surprise("test-surprise", "", failing(std::logic_error("s")));
const Command number("test-number", "", failing(7));

TEST(Command, failures_have_exit_codes_and_messages) {
  const auto expect = [](const char* name, int exit_code, const std::string& message) {
    const char* arguments[] = {"heed", name};
    testing::internal::CaptureStderr();
    EXPECT_EQ(run(2, arguments), exit_code) << name;
    EXPECT_EQ(testing::internal::GetCapturedStderr(), message + "\n");
  };
  expect("test-usage", 2, "heed: u");
  expect("test-file", 3, "heed: f");
  expect("test-diverged", 4, "heed: d");
  expect("test-plain", 1, "heed: p");
  expect("test-memory", 1, "heed: out of memory");
  expect("test-surprise", 1, "heed: unexpected: s");
  expect("test-number", 1, "heed: unexpected failure");
}

TEST(Command, the_list_is_sorted) {
  const std::vector<const Command*>& all = every_command();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) { return a->name < b->name; }));
}

}  // namespace
}  // namespace heed::cli
