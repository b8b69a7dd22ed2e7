// Applies ModelChoice to config.json under the key names of each architecture.
#include <algorithm>

#include "heed/core/nearest.h"
#include "heed/models/architecture.h"
#include "heed/nn/feed_forward.h"
#include "heed/train/presets.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); }

template <class... Parts>
void check_choice(bool ok, const Parts&... parts) {
  check<UsageError>(ok, "model: ", parts...);
}

void check_supported(const ModelChoice& choice, const char* key, const std::string& value, const Names& supported) {
  check_choice(has(supported, value), key, "=", quoted(value), " is not supported by ", choice.preset, ", expected ",
               supported.empty() ? "none" : listed(supported), did_you_mean(value, supported));
}

bool flag_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || *found != false;
}

// The names of the choices for which a property holds.
template <class Property>
Names names_with(const char* key, const Property& property) {
  Names out;
  for (const Choice& each : choices(key).all)
    if (property(each)) out.push_back(each.name);
  return out;
}
bool in_scores(const Choice& each) { return each.term; }

// "window:4:2,causal" -> [{"kind": "window", "before": 4, "after": 2}, {"kind": "causal"}]
Json chosen_json(const Choices& list, const std::string& texts) {
  Json out = Json::array();
  for (const std::string& text : split(texts, ',')) {
    try {
      out.push_back(parse_chosen(list, text).json());
    } catch (const Error& error) {
      fail<UsageError>("model: ", list.setting, "=", quoted(text), ": ", error.what());
    }
  }
  return out;
}

void put(Json& config, const Names& keys, const Json& value) {
  for (const std::string& key : keys) config[key] = value;
}

// Networks without attention support none of these settings, except for sizes that they have.
void refuse_attention(const ModelChoice& choice, const ConfigKeys& names, Json& config) {
  ModelChoice changed = choice, defaults;
  changed.model = {};
  if (!names.width.empty() && choice.width > 0) put(config, names.width, choice.width);
  if (!names.layers.empty() && choice.layers > 0) put(config, names.layers, choice.layers);
  if (!names.dropout.empty() && choice.dropout >= 0) put(config, names.dropout, value_json(choice.dropout));
  if (!names.width.empty()) changed.width = defaults.width;
  if (!names.layers.empty()) changed.layers = defaults.layers;
  if (!names.dropout.empty()) changed.dropout = defaults.dropout;
  Settings chosen_settings, default_settings;
  declare(chosen_settings, changed);
  declare(default_settings, defaults);
  const Json chosen_values = chosen_settings.json(), default_values = default_settings.json();
  std::string own;
  for (const std::string& key : names.more) own += (own.empty() ? "model." : ", model.") + key;
  for (const auto& [key, value] : default_values.items())
    check_choice(key == "preset" || chosen_values.value(key, value) == value, key, "=", chosen_settings.text(key), " is not supported by ",
                 choice.preset, ", which has no attention of that kind; it has ", own);
}

void choose_sizes(const ModelChoice& choice, const ConfigKeys& names, Json& config) {
  const std::string& width = names.width[0];
  if (choice.width > 0) {
    const int64_t before = config.at(width).get<int64_t>(), wide = config.at(names.feed_forward[0]).get<int64_t>();
    put(config, names.feed_forward, std::max<int64_t>(wide * choice.width / before, 1));  // scales with the width unless it is set
    if (config.contains("head_dim") && config["head_dim"] == before) config["head_dim"] = choice.width;
    config[width] = choice.width;
  }
  if (choice.layers > 0) put(config, names.layers, choice.layers);
  if (const int64_t heads = choice.heads > 0 ? choice.heads : heads_for(choice)) put(config, names.heads, heads);
  if (choice.feed_forward > 0) put(config, names.feed_forward, choice.feed_forward);
  if (!choice.activation.empty()) put(config, names.activation, choice.activation);
  if (choice.dropout >= 0) put(config, names.dropout, value_json(choice.dropout));
  check_choice(choice.patch == 0 || has(names.all(), "patch_size"), "patch=", choice.patch, " is not supported by ", choice.preset,
               ", expected an image model");
  if (choice.patch > 0) config["patch_size"] = choice.patch;
}

void choose_kind(const ModelChoice& choice, Json& own) {
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) own[key] = value;
  };
  set("attention", choice.attention);
  set("features", choice.features);
  set("norm", choice.norm);
  set("pooling", choice.pooling);
  if (!choice.content.empty()) own["content"] = choice.content == "true";
  if (!choice.project_values.empty()) own["project_values"] = choice.project_values == "true";
  if (choice.reach > 0) own["reach"] = choice.reach;
  if (choice.reduction > 0) own["reduction"] = choice.reduction;
  if (choice.stochastic_depth >= 0) own["stochastic_depth"] = value_json(choice.stochastic_depth);
  if (choice.soft_cap > 0) own["soft_cap"] = value_json(choice.soft_cap);
  if (!choice.position.empty()) {
    const Json positions = chosen_json(choices("positions"), choice.position);
    own["positions"] = positions.size() == 1 ? positions[0] : positions;
  }
  if (!choice.pattern.empty()) own["pattern"] = chosen_json(choices("pattern"), choice.pattern);
}

// The "heed" object of config.json, with defaults.
struct HeedConfig {
  Names positions, patterns;
  std::string attention, pooling;
  bool content, scores;  // scores: a position term is added to the scores

  HeedConfig(const Json& own, const std::string& default_position) : content(flag_at(own, "content")) {
    const auto names = [&](const char* key) { return own.contains(key) ? chosen_names(own[key], choices(key)) : Names(); };
    const auto name = [&](const char* key) { return names(key).empty() ? choices(key).all[0].name : names(key)[0]; };
    positions = own.contains("positions") ? names("positions") : Names{default_position};
    patterns = names("pattern");
    attention = name("attention");
    pooling = name("pooling");
    scores = any("positions", positions, in_scores);
  }

  template <class Property>
  static bool any(const char* key, const Names& names, const Property& property) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const Choice* found = choices(key).find(name);
      return found && property(*found);
    });
  }
  bool needs_grid() const {
    const auto grid = [](const Choice& each) { return each.needs_grid; };
    return any("positions", positions, grid) || any("pattern", patterns, grid) || any("attention", {attention}, grid);
  }
};

void check_values(const ModelChoice& choice, const Family& family, const Json& own, const HeedConfig& chosen) {
  const Names token_positions = names_with("positions", [](const Choice& each) { return each.on_tokens; });
  int64_t on_tokens = 0;
  for (const std::string& each : chosen.positions) {
    check_supported(choice, "position", each, supported_choices(family, choices("positions")));
    on_tokens += has(token_positions, each);
    check_choice(each != "none" || chosen.positions.size() == 1, "position=", listed(chosen.positions), ", expected none alone or others");
  }
  check_choice(on_tokens <= 1, "position=", listed(chosen.positions), ", expected at most one of ", listed(token_positions),
               ", which are added to tokens");
  for (const std::string& each : chosen.patterns) check_supported(choice, "pattern", each, supported_choices(family, choices("pattern")));
  check_supported(choice, "attention", chosen.attention, supported_choices(family, choices("attention")));
  if (own.contains("pooling")) check_supported(choice, "pooling", chosen.pooling, supported_choices(family, choices("pooling")));
  const auto shown = [&](const char* key) { return own.contains(key) ? std::string(key) + "=" + list_text(key, own[key]) : ""; };
  check_choice(!own.contains("reach") || has(chosen.positions, "relative"), shown("reach"), ", expected position=relative with it");
  check_choice(!own.contains("features") || chosen.attention == "linear", shown("features"), ", expected attention=linear with it");
  check_choice(!own.contains("reduction") || chosen.attention == "pooled", shown("reduction"), ", expected attention=pooled with it");
}

// Attention without scores rejects settings that change scores. Without content, something else must produce scores.
void check_combination(const Json& own, const HeedConfig& chosen) {
  const Choice& kind = *choices("attention").find(chosen.attention);
  if (!kind.takes_terms) {
    const std::string expected = ", expected attention=soft or hard with it";
    check_choice(!chosen.scores, "position=", listed(chosen.positions), " is added to scores, which attention=", chosen.attention,
                 " does not compute", expected);
    check_choice(!own.contains("soft_cap"), "soft_cap", expected);
    check_choice(chosen.content, "content=false", expected);
    const bool only_causal = std::all_of(chosen.patterns.begin(), chosen.patterns.end(), [](auto& each) { return each == "causal"; });
    check_choice(chosen.patterns.empty() || (kind.takes_masks && only_causal), "a pattern with attention=", chosen.attention, expected);
  }
  check_choice(chosen.attention != "channel" || flag_at(own, "project_values"),
               "attention=channel needs value projections, expected project_values=true");
  if (chosen.content) return;
  check_choice(chosen.scores || own.contains("pattern"), "content=false, expected one of ", listed(names_with("positions", in_scores)),
               " as position: without one all scores are equal");
  for (const std::string& each : names_with("positions", [](const Choice& position) { return position.needs_content; }))
    check_choice(!has(chosen.positions, each), "position=", each, " with content=false, expected content=true");
}

void check_heads(const Json& config, const Json& own, const ConfigKeys& names) {
  const auto number = [&](const std::string& key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  const int64_t width = number(names.width[0]), heads = number(names.heads[0]);
  const bool any_width = config.contains("head_dim") || (!flag_at(own, "content") && !flag_at(own, "project_values"));
  check_choice(any_width || heads < 1 || width % heads == 0, "width=", width, " does not divide into heads=", heads,
               ", expected a multiple");
}

}  // namespace

void declare(Settings& settings, ModelChoice& choice) {
  Names names, keys;
  for (const Preset& each : presets()) names.push_back(each.name);
  for (const Architecture& each : architectures())
    for (const std::string& key : each.family->keys.all())
      if (!has(keys, key)) keys.push_back(key);
  // A setting whose values are in the list of choices.
  const auto add_choice = [&](const char* key, std::string& value, bool several = false) {
    const Choices& list = choices(key);
    Allowed allowed{.choices = {""}, .several = several, .with_settings = several};
    std::string meaning = list.meaning;
    for (const Choice& each : list.all) {
      allowed.choices.push_back(each.name);
      for (const std::string& alias : each.aliases) allowed.aliases[alias] = each.name;
      if (each.term && !each.term->settings.empty()) meaning += (meaning == list.meaning ? "; with settings " : ", ") + each.term->usage();
    }
    settings.add(list.setting, value, meaning, allowed);
  };
  const Allowed size{.least = 0, .most = 1e6}, flag{.choices = {"", "true", "false"}};
  settings.heading("The model. Empty, 0 and -1: as in the preset");
  settings.add("preset", choice.preset, "initial model configuration and training settings", {.choices = names});
  settings.add("layers", choice.layers, "number of layers, on each side of an encoder-decoder", size);
  settings.add("heads", choice.heads, "number of attention heads", size);
  settings.add("width", choice.width, "embedding size", size);
  settings.add("feed_forward", choice.feed_forward, "hidden size of the feed-forward layers; 0: scales with width", size);
  settings.add("patch", choice.patch, "patch size in pixels", size);
  Names activations{""};
  for (const auto& [name, activation] : activation_names()) activations.push_back(name);
  settings.add("activation", choice.activation, "of the feed-forward layers", {.choices = activations});
  settings.add("dropout", choice.dropout, "dropout probability", {.least = -1, .most = 0.99});
  settings.add("stochastic_depth", choice.stochastic_depth,
               "probability that a sample skips a residual branch of the last layer in training; smaller for earlier layers; 0: none",
               {.least = -1, .most = 0.99});
  add_choice("positions", choice.position, true);
  settings.add("reach", choice.reach, "for position=relative: the largest distance with its own parameter", size);
  add_choice("attention", choice.attention);
  add_choice("features", choice.features);
  settings.add("reduction", choice.reduction, "for attention=pooled: keys pooled into one, per side", size);
  add_choice("pattern", choice.pattern, true);
  settings.add("soft_cap", choice.soft_cap, "limit of scores, by tanh; 0: none", {.least = 0});
  settings.add("content", choice.content, "false: attention depends on positions only", flag);
  settings.add("project_values", choice.project_values, "false: every head uses the tokens as values", flag);
  add_choice("pooling", choice.pooling);
  add_choice("norm", choice.norm);
  settings.add_open("model.", choice.model, "keys of config.json: model.initializer_range=0.01; they override the settings above",
                    [keys] { return keys; });
}

Json model_config(const ModelChoice& choice) {
  Json config = preset_named(choice.preset).config;
  const Family& family = *architecture_of(Config(config, "preset")).family;
  const ConfigKeys& names = family.keys;
  const Names keys = names.all();
  if (names.heads.empty())
    refuse_attention(choice, names, config);
  else
    choose_sizes(choice, names, config);
  if (!config.contains("heed")) config["heed"] = Json::object();
  choose_kind(choice, config["heed"]);
  for (const auto& [key, value] : choice.model.items()) check_supported(choice, "model.NAME", key, keys);
  config.merge_patch(choice.model.is_object() ? choice.model : Json::object());
  if (names.heads.empty()) {
    if (config["heed"].empty()) config.erase("heed");
    return config;
  }
  Json& own = config["heed"];
  check_choice(own.is_object(), "model.heed=", own.dump(), ", expected a key below it: model.heed.NAME=VALUE");

  const HeedConfig before(own, family.default_position);
  const bool content_is_set = !choice.content.empty() || (choice.model.contains("heed") && choice.model["heed"].contains("content"));
  if (!before.content && !before.scores && !content_is_set) own.erase("content");
  const HeedConfig chosen(own, family.default_position);
  check_values(choice, family, own, chosen);
  check_combination(own, chosen);
  if (chosen.needs_grid() && chosen.pooling == "cls") {
    check_choice(!own.contains("pooling"),
                 "pooling=cls adds a class token, but these settings need a pure patch grid, expected gap, map or flatten");
    own["pooling"] = "gap";
  }
  check_heads(config, own, names);
  // The default positions need no entry. In a list with others, sinusoidal defaults are called "learned".
  if (own.contains("positions") && chosen.positions == Names{family.default_position}) own.erase("positions");
  if (own.contains("positions") && family.default_position == "sinusoidal")
    for (Json& each : own["positions"])
      if (each == "sinusoidal") each = "learned";
  if (own.empty()) config.erase("heed");
  return config;
}

}  // namespace heed
