#pragma once

#include <cstdint>

namespace heed {

int64_t memory_limit();  // bytes available to this process: limited by the machine or by its control group

}  // namespace heed
