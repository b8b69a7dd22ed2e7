// Runs the program: arguments and standard input in, output and exit code out.
#pragma once

#include <sys/wait.h>

#include <cstdlib>

#include "tests/io/files.h"

namespace heed::test {

struct ProgramResult {
  int exit_code;
  std::string out, err;
};

// arguments: as a shell reads them. input: standard input
inline ProgramResult run_heed(const std::string& arguments, const std::string& input = "") {
  const Folder folder;
  put(folder / "in", input);
  const auto quoted = [&](const char* name) { return "'" + (folder / name).string() + "'"; };
  const int status =
      std::system(("'" HEED_PROGRAM "' " + arguments + " <" + quoted("in") + " >" + quoted("out") + " 2>" + quoted("err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, get(folder / "out"), get(folder / "err")};
}

// The output of the program, or its exit code and error.
inline std::string output_of_heed(const std::string& arguments, const std::string& input = "") {
  const ProgramResult ran = run_heed(arguments, input);
  return ran.exit_code == 0 ? ran.out : std::to_string(ran.exit_code) + ": " + ran.err;
}

}  // namespace heed::test
