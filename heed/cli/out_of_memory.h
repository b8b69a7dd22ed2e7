// Out-of-memory handling of the program.
#pragma once

namespace heed::cli {

// Makes a failed `new` exit the program with one line and exit code 1. It does not throw, because some destructors (of JSON values, for
// example) allocate, and an exception there would terminate. Files are left as after a kill: old or complete, and a run can be resumed.
void exit_on_out_of_memory();

}  // namespace heed::cli
