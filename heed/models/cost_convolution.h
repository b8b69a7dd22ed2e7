// Output sizes of the convolutions of a residual network: private to cost.cc.
#pragma once

#include <array>
#include <string>

#include "heed/models/config.h"

namespace heed {

// Rows and columns of a module's output; 1 x 1 after global pooling. name: "resnet.encoder.stages.1.layers.0.shortcut"
std::array<int64_t, 2> convolution_output_size(const Config& config, const std::string& name);

}  // namespace heed
