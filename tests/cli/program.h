// The program as its users meet it: arguments and input in, what it prints and its exit code out.
#pragma once

#include <sys/wait.h>

#include <cstdlib>

#include "tests/io/files.h"

namespace heed::test {

struct Ran {
  int exit_code;
  std::string out, err;
};

// arguments: as a shell reads them. input: what stands on standard input
inline Ran run_heed(const std::string& arguments, const std::string& input = "") {
  const Folder folder;
  put(folder / "in", input);
  const auto quoted = [&](const char* name) { return "'" + (folder / name).string() + "'"; };
  const int status =
      std::system(("'" HEED_PROGRAM "' " + arguments + " <" + quoted("in") + " >" + quoted("out") + " 2>" + quoted("err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, get(folder / "out"), get(folder / "err")};
}

// What the program prints, or its exit code and complaint.
inline std::string said_by_heed(const std::string& arguments, const std::string& input = "") {
  const Ran ran = run_heed(arguments, input);
  return ran.exit_code == 0 ? ran.out : std::to_string(ran.exit_code) + ": " + ran.err;
}

}  // namespace heed::test
