// Arguments of the kernels that fill with random numbers. Four elements share a block of the generator, so that an element is a function of
// the key and its index alone.
#pragma once

#include "heed/core/kernel.h"
#include "heed/core/philox.h"

namespace heed {

struct FillUniform {  // in [low, high)
  float* to;
  int64_t count;
  RandomKey key;
  float low, high;
};
HEED_KERNEL(fill_uniform, FillUniform);

struct FillNormal {
  float* to;
  int64_t count;
  RandomKey key;
  float mean, deviation;
};
HEED_KERNEL(fill_normal, FillNormal);

}  // namespace heed
