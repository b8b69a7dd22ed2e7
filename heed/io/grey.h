// The grey of a colour, for host and device.
#pragma once

#include <cstdint>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {

// As Pillow's convert("L") computes it (ITU-R 601). rgb: three bytes
HEED_HOST_DEVICE inline uint8_t grey_of(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16u);
}

}  // namespace heed
