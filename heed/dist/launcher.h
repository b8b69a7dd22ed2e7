// Implemented in mpi_group.cc, or in no_mpi.cc in a build without MPI.
#pragma once

#include "heed/core/api.h"
#include "heed/dist/group.h"

namespace HEED_API heed {

bool is_launched();  // start_processes() was called
Group& launched_group();
[[noreturn]] void abort_processes(int exit_code);  // ends all processes at once

}  // namespace heed
