// Every experiment, by the function that makes it: a new one is a file and its line here.
#pragma once

#include "heed/lab/experiment.h"

// clang-format off
#define HEED_EXPERIMENTS(X)   \
  X(softmax_temperature)      \
  X(dot_product_variance)
// clang-format on

namespace heed::lab {

#define HEED_DECLARE(name) Experiment name();
HEED_EXPERIMENTS(HEED_DECLARE)
#undef HEED_DECLARE

}  // namespace heed::lab
