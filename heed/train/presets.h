// Models to begin with, each with a recipe to train it, and what a person may choose otherwise in a word or two.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/train/settings.h"

namespace heed {

struct Preset {
  std::string name, summary;
  std::string family;  // "vit", "resnet", "bert", "gpt", "encoder-decoder"
  Json config;         // config.json; numbers of words, labels and pixels are placeholders that tasks replace
  std::vector<std::pair<std::string, std::string>> settings = {};  // the recipe
};

const std::vector<Preset>& presets();
const Preset& preset_named(const std::string& name);  // a UsageError that lists all where there is none
std::vector<std::string> presets_of(const std::vector<std::string>& families);
void apply_recipe(const Preset& preset, Settings& settings);

// What differs from the preset. Empty, 0 and negative shares: nothing.
struct ModelChoice {
  std::string preset = "vit-tiny";
  int64_t layers = 0, heads = 0, width = 0, feed_forward = 0, patch = 0;
  std::string activation = "";
  float dropout = -1, stochastic_depth = -1;
  std::string position = "";  // one or several with commas
  int64_t reach = 0;          // of position=relative
  std::string attention = "", features = "";
  int64_t reduction = 0;     // of attention=pooled
  std::string pattern = "";  // causal, window:4, window:4:2:1, chunks:16, chunks:16:shifted, dilated:2, grid_window:2; several with commas
  float soft_cap = 0;
  std::string content = "", project_values = "";  // "true", "false"
  std::string pooling = "", norm = "";
  Json model = {};  // keys of config.json; they win over all others
};
void declare(Settings& settings, ModelChoice& choice);

// How many heads a width that was chosen without them divides into: the most up to the preset's, which leave an even width to each
// where they can (rotary positions need that). 0: nothing need change.
int64_t heads_for(const ModelChoice& choice);

// The preset's config.json with what was chosen, in the architecture's own words. Choices that the architecture does not know, or
// that do not go together, are UsageErrors that say what is possible. One choice may bring another with it where nobody said
// otherwise: what needs a grid takes the place of the class token (pooling=gap), and content comes back where positions cannot
// speak for themselves.
Json model_config(const ModelChoice& choice);

}  // namespace heed
