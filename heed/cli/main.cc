// The program. Its commands are the other files of this folder.
#include <signal.h>

#include "heed/cli/out_of_memory.h"
#include "heed/cli/run.h"

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe is an error like any other
  heed::cli::end_when_memory_is_out();
  return heed::cli::run(argc, argv);
}
