// The program as a function.
#pragma once

namespace heed::cli {

// Parses the command line and runs the command. Returns the exit code: 0 fine, 1 failure, 2 wrong usage, 3 bad input file,
// 4 diverged. Errors go to standard error as one line.
int run(int argc, const char* const* argv);

}  // namespace heed::cli
