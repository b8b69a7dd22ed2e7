#include "heed/cli/read_progress.h"

#include <unistd.h>

#include <cmath>
#include <iostream>

#include "heed/io/read_progress.h"
#include "heed/io/terminal_style.h"

namespace heed::cli {

void show_long_reads() {
  if (!is_terminal(STDERR_FILENO)) return;
  set_read_progress_callback([](const std::string& what, double share) {
    std::cerr << "\r\x1b[K";
    if (share < 1) std::cerr << what << ": " << static_cast<int>(std::floor(100 * share)) << '%';
    std::cerr << std::flush;
  });
}

}  // namespace heed::cli
