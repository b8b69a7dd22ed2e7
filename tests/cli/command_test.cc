// Exit codes and messages of failing commands: test commands that throw every kind of exception.
#include "heed/cli/command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "heed/cli/run.h"
#include "heed/core/check.h"
#include "heed/io/json.h"

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
const Command length("test-length", "", failing(std::length_error("vector")));
const std::filesystem::path kPath("a\xE9\x1B[1m");
const Command loop("test-loop", "",
                   failing(std::filesystem::filesystem_error("status", kPath,
                                                             std::make_error_code(std::errc::too_many_symbolic_link_levels))));
const Command full("test-full", "",
                   failing(std::filesystem::filesystem_error("write", "b", std::make_error_code(std::errc::no_space_on_device))));
const Command json("test-json", "", [](Flags&) { return [] { (void)Json("text").get<int>(); }; });
const Command lines("test-lines", "", failing(FileError("one\n  two\r")));
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
  expect("test-length", 1, "heed: out of memory: a requested size is larger than any memory");
  expect("test-loop", 3,
         "heed: a\\xe9\\x1b[1m: cannot be examined (Too many levels of symbolic links); check the path and its permissions");
  expect("test-full", 1, "heed: b: cannot be written (No space left on device); check the path, its permissions and the space on the disk");
  expect("test-json", 3,
         "heed: a value of a JSON file is not what heed expects: [json.exception.type_error.302] type must be number, but is string");
  expect("test-lines", 3, "heed: one\n  two\\x0d");
  expect("test-surprise", 1, "heed: unexpected: s");
  expect("test-number", 1, "heed: unexpected failure");
}

TEST(Command, names_are_sorted) {
  const std::vector<const Command*>& all = all_commands();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) { return a->name < b->name; }));
}

}  // namespace
}  // namespace heed::cli
