// The cores of a host, shared among its processes.
#pragma once

#include "heed/core/api.h"
#include "heed/dist/group.h"

namespace HEED_API heed {

// The number of compute threads of this process: HEED_THREADS, or its share of the cores of its host.
void share_cores(Group& group);

}  // namespace heed
