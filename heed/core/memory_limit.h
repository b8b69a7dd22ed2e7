#pragma once

#include <cstdint>

#include "heed/core/api.h"

namespace HEED_API heed {

int64_t memory_limit();  // bytes that this machine, or the control group around the process, lets the process have

}  // namespace heed
