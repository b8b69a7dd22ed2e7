#include "heed/models/cost_convolution.h"

#include <algorithm>

#include "heed/models/cost_attention.h"

namespace heed {
namespace {

// The number behind a word of a name, "stages.1" for example; -1 without the word.
int64_t number_behind(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() || found + 1 == words.end() ? -1 : std::stoll(*(found + 1));
}

}  // namespace

std::array<int64_t, 2> convolution_places(const Config& config, const std::string& name) {
  std::array<int64_t, 2> at = config.sides("image_size", 224);
  const auto halve = [&] {  // every stride of 2 keeps the first place, and every second one behind it
    for (int64_t& side : at) side = (side + 1) / 2;
  };
  const std::vector<std::string> words = name_words(name);
  const int64_t stage = number_behind(words, "stages");
  if (stage < 0 && std::find(words.begin(), words.end(), "embedder") == words.end()) return {1, 1};
  if (config.below("heed").word("stem", "published") != "small") {
    halve();
    if (stage >= 0) halve();  // a pool behind the stem
  }
  for (int64_t i = 0; i <= stage; ++i) {
    if (i == 0 && !config.flag("downsample_in_first_stage", false)) continue;
    // Of a bottleneck, the first convolution of a stage comes before the stride unless config.json says otherwise.
    const bool before = i == stage && number_behind(words, "layers") == 0 && number_behind(words, "layer") == 0 &&
                        config.word("layer_type", "bottleneck") == "bottleneck" && !config.flag("downsample_in_bottleneck", false);
    if (!before) halve();
  }
  return at;
}

}  // namespace heed
