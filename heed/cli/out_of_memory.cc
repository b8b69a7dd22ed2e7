#include "heed/cli/out_of_memory.h"

#include <unistd.h>

#include <new>
#include <string_view>

#include "heed/io/temporary.h"

namespace heed::cli {

void exit_on_out_of_memory() {
  std::set_new_handler([] {
    constexpr std::string_view line = "heed: out of memory\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    unlink_temporaries();
    ::_exit(1);
  });
}

}  // namespace heed::cli
