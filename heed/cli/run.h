// The program as a function.
#pragma once

#include <string>

namespace heed::cli {

// Parses the command line and runs the command. Returns the exit code: 0 fine, 1 failure, 2 wrong usage, 3 bad input file,
// 4 diverged. Errors go to standard error as one line.
int run(int argc, const char* const* argv);

// The same, in all processes that mpirun or the like has started. Output and errors are printed once; commands that do not split their work
// run in the first process only.
int run_in_processes(int argc, const char* const* argv);

struct RunResult {
  int exit_code;
  std::string error = {};  // empty if there is nothing to say
};
RunResult run_without_message(int argc, const char* const* argv);
void print_error(const std::string& message);

}  // namespace heed::cli
