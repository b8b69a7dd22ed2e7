#include "heed/models/cost_convolution.h"

#include <algorithm>

#include "heed/models/cost_attention.h"

namespace heed {
namespace {

// The number after a part of a name, for example 1 in "stages.1"; -1 if the part is absent.
int64_t number_after(const std::vector<std::string>& parts, const std::string& part) {
  const auto found = std::find(parts.begin(), parts.end(), part);
  return found == parts.end() || found + 1 == parts.end() ? -1 : std::stoll(*(found + 1));
}

}  // namespace

std::array<int64_t, 2> convolution_output_size(const Config& config, const std::string& name) {
  std::array<int64_t, 2> at = config.sides("image_size", 224);
  const auto halve = [&] {  // a stride of 2 rounds up
    for (int64_t& side : at) side = (side + 1) / 2;
  };
  const std::vector<std::string> parts = name_parts(name);
  const int64_t stage = number_after(parts, "stages");
  if (stage < 0 && std::find(parts.begin(), parts.end(), "embedder") == parts.end()) return {1, 1};
  if (config.below("heed").string("stem", "published") != "small") {
    halve();
    if (stage >= 0) halve();  // max pooling after the stem
  }
  for (int64_t i = 0; i <= stage; ++i) {
    if (i == 0 && !config.flag("downsample_in_first_stage", false)) continue;
    // The first convolution of a bottleneck is before the stride, unless downsample_in_bottleneck is set.
    const bool before = i == stage && number_after(parts, "layers") == 0 && number_after(parts, "layer") == 0 &&
                        config.string("layer_type", "bottleneck") == "bottleneck" && !config.flag("downsample_in_bottleneck", false);
    if (!before) halve();
  }
  return at;
}

}  // namespace heed
