// What the program does when there is no memory.
#pragma once

namespace heed::cli {

// From now on an allocation by new that fails ends the program with one line and exit code 1. Nothing is thrown: destructors, those of JSON
// values for example, allocate too, and there an exception would be a crash. Files are as after a kill: old or complete, and a run can be
// resumed.
void end_when_memory_is_out();

}  // namespace heed::cli
