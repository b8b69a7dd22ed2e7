#pragma once

#include <cstdint>

#include "heed/core/api.h"

namespace HEED_API heed {

int64_t memory_limit();  // bytes available to this process: limited by the machine or by its control group

}  // namespace heed
