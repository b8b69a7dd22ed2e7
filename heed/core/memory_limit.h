#pragma once

#include <cstdint>

namespace heed {

int64_t memory_limit();  // bytes that this machine, or the control group around the process, lets the process have

}  // namespace heed
