// Progress of long file reads on standard error, if it is a terminal.
#pragma once

namespace heed::cli {

void show_long_reads();

}  // namespace heed::cli
