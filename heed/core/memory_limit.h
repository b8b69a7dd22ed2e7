#pragma once

#include <cstdint>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {

int64_t memory_limit();  // bytes available to this process: limited by the machine or by its control group

// Whether half of a GPU's memory is free. Then backward reads saved tensors rather than computing them again, which gives the same bits.
bool has_room_to_save(Device device);

}  // namespace heed
