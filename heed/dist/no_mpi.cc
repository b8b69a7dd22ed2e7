// A build without MPI.
#include <cstdlib>

#include "heed/dist/launcher.h"

namespace heed {

bool is_launched() { return false; }
Group& launched_group() { return world(); }
void abort_processes(int exit_code) { std::_Exit(exit_code); }

void start_processes() {
  fail("this heed was built without MPI, but ", launched_processes(),
       " processes were started. Install MPI (on Debian libopenmpi-dev) and build again, or start one process");
}

int end_processes(int exit_code, const std::string& error, const std::function<void(const std::string& message)>& print) {
  if (exit_code != 0) print(error);
  return exit_code;
}

}  // namespace heed
