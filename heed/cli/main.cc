// The program. Its commands are the other files of this folder.
#include <signal.h>

#include "heed/cli/out_of_memory.h"
#include "heed/cli/run.h"

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is reported as a write error instead
  heed::cli::exit_on_out_of_memory();
  return heed::cli::run_in_processes(argc, argv);
}
