// Long reads of files, shown on a terminal's standard error; nothing elsewhere.
#pragma once

namespace heed::cli {

void show_long_reads();

}  // namespace heed::cli
