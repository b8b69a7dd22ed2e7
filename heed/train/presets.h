// Preset models with training settings, and the settings that modify them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/core/api.h"
#include "heed/train/settings.h"

namespace HEED_API heed {

// A model of known size, with the settings to train it.
struct Preset {
  std::string name, summary;
  std::string family;  // "vit", "resnet", "bert", "gpt", "encoder-decoder"
  Json config;         // config.json; vocab_size, num_labels and image_size are placeholders that tasks replace
  std::vector<std::pair<std::string, std::string>> settings = {};  // training settings
};

// All presets; one, by name; the names of those in the families.
const std::vector<Preset>& presets();
const Preset& preset_named(const std::string& name);  // UsageError that lists all presets if there is none
std::vector<std::string> presets_of(const std::vector<std::string>& families);
// Sets what the preset says and the user has not set.
void apply_training_settings(const Preset& preset, Settings& settings);

// Changes to the preset. Empty strings, 0 and negative fractions mean no change.
struct ModelChoice {
  std::string preset = "vit-tiny";
  int64_t layers = 0, heads = 0, width = 0, feed_forward = 0, patch = 0;
  std::string activation = "";
  float dropout = -1, stochastic_depth = -1;
  std::string position = "";  // one, or several separated by commas; positions and patterns may have settings: window:4:2
  int64_t reach = 0;          // for position=relative
  std::string attention = "", features = "";
  int64_t reduction = 0;     // for attention=pooled
  std::string pattern = "";  // one, or several separated by commas
  float soft_cap = 0;
  std::string content = "", project_values = "";  // "true", "false"
  std::string pooling = "", norm = "";
  Json model = {};  // keys of config.json; they override all others
};
void declare(Settings& settings, ModelChoice& choice);

// The number of heads if only the width was changed: the largest number up to the preset's that divides it, with an even head size if
// possible (rotary positions need that). 0: no change needed.
int64_t heads_for(const ModelChoice& choice);

// The preset's config.json with the changes applied, under the architecture's key names. Unsupported or contradictory choices are
// UsageErrors that list the possible values. Some choices imply others unless they are set: grid positions and patterns imply pooling=gap,
// which needs no class token; content=true is restored if no position term is added to the scores.
Json model_config(const ModelChoice& choice);

}  // namespace heed
