#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <streambuf>
#include <string_view>

#include "heed/cli/run.h"
#include "heed/core/isa.h"
#include "heed/dist/group.h"

namespace heed::cli {
namespace {

// The commands that split their work.
constexpr std::array<std::string_view, 5> kSplitCommands{"embed", "eval", "predict", "train", "translate"};

// Takes everything and prints nothing.
class NoOutput : public std::streambuf {
 protected:
  int overflow(int letter) override { return traits_type::not_eof(letter); }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

// Also from a process whose output is dropped.
void print_to_standard_error(const std::string& message) {
  if (world().is_first()) return print_error(message);
  const std::string line = "heed: " + message + '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

// Throws where processes cannot work together. Different instruction sets round differently, so weights would drift apart.
void check_processes() {
  apply_instruction_set();
  check_same(world(), "heed", HEED_VERSION);
  check_same(world(), "the instruction set", instruction_set());
}

}  // namespace

int run_in_processes(int argc, const char* const* argv) {
  if (launched_processes() <= 1) return run(argc, argv);
  static NoOutput& nowhere = *new NoOutput;  // never destroyed: std::cout is flushed at the very end
  RunResult result{0};
  try {
    start_processes();
    check_processes();
    ::setenv("NO_COLOR", "1", 0);  // mpirun gives its processes a terminal, whatever its own output is
    if (!world().is_first()) {
      std::ios::sync_with_stdio(false);  // a later call would put the buffers back
      std::cout.rdbuf(&nowhere);
      std::cerr.rdbuf(&nowhere);
    }
    const bool splits = argc > 1 && std::find(kSplitCommands.begin(), kSplitCommands.end(), argv[1]) != kSplitCommands.end();
    if (splits) {
      result = run_without_message(argc, argv);
    } else if (world().is_first()) {
      const WithoutOthers alone;
      result = run_without_message(argc, argv);
    }
  } catch (const Error& error) {
    result = {error.exit_code(), error.what()};
  }
  return end_processes(result.exit_code, result.error, print_to_standard_error);
}

}  // namespace heed::cli
