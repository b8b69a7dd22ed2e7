// How many places the convolutions of a residual network see: private to cost.cc.
#pragma once

#include <array>
#include <string>

#include "heed/models/config.h"

namespace heed {

// Rows and columns that a part puts out; 1 x 1 behind the mean over all of them. name: "resnet.encoder.stages.1.layers.0.shortcut"
std::array<int64_t, 2> convolution_places(const Config& config, const std::string& name);

}  // namespace heed
