// From what a person chose to config.json, in the words of each architecture.
#include <algorithm>
#include <map>

#include "heed/core/nearest.h"
#include "heed/train/dialect.h"
#include "heed/train/presets.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

using Words = std::vector<std::string>;

const Words kInScores{"relative", "relative_2d", "relative_content", "alibi", "gaussian", "gaussian_full"};
const Words kOnTokens{"learned", "learned_2d", "sinusoidal", "sinusoidal_2d"};
const Words kOnGrids{"learned_2d", "sinusoidal_2d", "relative_2d", "gaussian", "gaussian_full"};

bool has(const Words& words, const std::string& word) { return std::find(words.begin(), words.end(), word) != words.end(); }

template <class... Parts>
void check_choice(bool ok, const Parts&... parts) {
  check<UsageError>(ok, "model: ", parts...);
}

void check_possible(const ModelChoice& choice, const char* key, const std::string& word, const Words& possible) {
  check_choice(has(possible, word), key, "=", quoted(word), " is not for ", choice.preset, ", expected ",
               possible.empty() ? "none" : listed(possible), did_you_mean(word, possible));
}

// A word or a list of them; what else a config may hold is for the model to refuse.
Words words_at(const Json& object, const char* key) {
  Words out;
  const auto found = object.find(key);
  if (found == object.end()) return out;
  for (const Json& each : found->is_array() ? *found : Json::array({*found}))
    if (each.is_string()) out.push_back(each.get<std::string>());
  return out;
}

std::string word_at(const Json& object, const char* key, const std::string& otherwise) {
  const Words found = words_at(object, key);
  return found.empty() ? otherwise : found[0];
}

bool flag_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || *found != false;
}

// "window:4:2" -> {"kind": "window", "before": 4, "after": 2}
Json pattern_of(const std::string& text) {
  static const std::map<std::string, Words> parts{{"causal", {}},
                                                  {"window", {"before", "after", "globals"}},
                                                  {"chunks", {"size", "shifted"}},
                                                  {"dilated", {"step"}},
                                                  {"grid_window", {"rows", "columns"}}};
  const Words said = split(text, ':');
  const auto found = parts.find(said[0]);
  const bool known = found != parts.end() && said.size() <= found->second.size() + 1 && (said.size() > 1 || found->second.empty());
  check_choice(known, "pattern=", quoted(text),
               ", expected causal, window:BEFORE:AFTER:GLOBALS, chunks:SIZE:shifted, dilated:STEP or grid_window:ROWS:COLUMNS, "
               "of which the last parts may be left out");
  Json out{{"kind", said[0]}};
  for (size_t i = 1; i < said.size(); ++i) {
    const std::string& name = found->second[i - 1];
    int64_t number = 0;
    try {
      if (name == "shifted")
        check(said[i] == "shifted", "found ", quoted(said[i]), ", expected shifted");
      else
        take_value(number, name, said[i], {.least = name == "size" || name == "step" ? 1.0 : 0.0, .most = 1e6});
    } catch (const Error& error) {
      fail<UsageError>("model: pattern=", quoted(text), ": ", error.what());
    }
    out[name] = name == "shifted" ? Json(true) : Json(number);
  }
  return out;
}

void put(Json& config, const Words& keys, const Json& value) {
  for (const std::string& key : keys) config[key] = value;
}

// A convolutional network knows its own keys alone.
void refuse_attention(const ModelChoice& choice) {
  ModelChoice said = choice, nothing;
  said.model = {};
  Settings mine, others;
  declare(mine, said);
  declare(others, nothing);
  const Json chosen = mine.json(), as_it_is = others.json();
  for (const auto& [key, plain] : as_it_is.items())
    check_choice(key == "preset" || chosen.value(key, plain) == plain, key, "=", mine.text(key), " is not for ", choice.preset,
                 ", expected none of attention's choices, but model.depths, model.hidden_sizes and the like");
}

void choose_sizes(const ModelChoice& choice, const Dialect& names, Json& config) {
  const std::string& width = names.width[0];
  if (choice.width > 0) {
    const int64_t before = config.at(width).get<int64_t>(), wide = config.at(names.feed_forward[0]).get<int64_t>();
    put(config, names.feed_forward, std::max<int64_t>(wide * choice.width / before, 1));  // in proportion, unless it is said as well
    if (config.contains("head_dim") && config["head_dim"] == before) config["head_dim"] = choice.width;
    config[width] = choice.width;
  }
  if (choice.layers > 0) put(config, names.layers, choice.layers);
  if (const int64_t heads = choice.heads > 0 ? choice.heads : heads_for(choice)) put(config, names.heads, heads);
  if (choice.feed_forward > 0) put(config, names.feed_forward, choice.feed_forward);
  if (!choice.activation.empty()) put(config, names.activation, choice.activation);
  if (choice.dropout >= 0) put(config, names.dropout, value_json(choice.dropout));
  check_choice(choice.patch == 0 || has(names.keys(), "patch_size"), "patch=", choice.patch, " is not for ", choice.preset,
               ", expected a model of pictures");
  if (choice.patch > 0) config["patch_size"] = choice.patch;
}

void choose_kind(const ModelChoice& choice, const Dialect& names, Json& own) {
  const auto say = [&](const char* key, const std::string& value) {
    if (!value.empty()) own[key] = value;
  };
  say("attention", choice.attention);
  say("features", choice.features);
  say("norm", choice.norm);
  say("pooling", choice.pooling);
  if (!choice.content.empty()) own["content"] = choice.content == "true";
  if (!choice.project_values.empty()) own["project_values"] = choice.project_values == "true";
  if (choice.reach > 0) own["reach"] = choice.reach;
  if (choice.reduction > 0) own["reduction"] = choice.reduction;
  if (choice.stochastic_depth >= 0) own["stochastic_depth"] = value_json(choice.stochastic_depth);
  if (choice.soft_cap > 0) own["soft_cap"] = value_json(choice.soft_cap);
  if (!choice.position.empty()) {
    const Words words = split(choice.position, ',');
    own["positions"] = words.size() == 1 ? Json(words[0]) : Json(words);
  }
  if (!choice.pattern.empty()) own["pattern"] = Json::array();
  for (const std::string& each : choice.pattern.empty() ? Words() : split(choice.pattern, ',')) {
    const Json pattern = pattern_of(each);
    check_possible(choice, "pattern", pattern["kind"].get<std::string>(), names.patterns);
    own["pattern"].push_back(pattern);
  }
}

// What config.json's own object says, as it stands.
struct Said {
  Words positions;
  std::string attention, pooling;
  bool content, scores, grid_pattern = false, other_pattern = false;  // scores: positions that are added to scores

  Said(const Json& own, const std::string& own_position)
      : positions(words_at(own, "positions")),
        attention(word_at(own, "attention", "soft")),
        pooling(word_at(own, "pooling", "cls")),
        content(flag_at(own, "content")) {
    if (positions.empty()) positions = {own_position};
    scores = std::any_of(positions.begin(), positions.end(), [](const std::string& each) { return has(kInScores, each); });
    if (!own.contains("pattern")) return;
    for (const Json& each : own["pattern"].is_array() ? own["pattern"] : Json::array({own["pattern"]})) {
      const std::string kind = each.is_object() ? word_at(each, "kind", "") : "";
      grid_pattern = grid_pattern || kind == "grid_window";
      other_pattern = other_pattern || kind != "causal";
    }
  }
};

void check_words(const ModelChoice& choice, const Dialect& names, const Json& own, const Said& said) {
  int64_t on_tokens = 0;
  for (const std::string& each : said.positions) {
    check_possible(choice, "position", each, names.positions);
    on_tokens += has(kOnTokens, each);
    check_choice(each != "none" || said.positions.size() == 1, "position=", listed(said.positions), ", expected none or others, not both");
  }
  check_choice(on_tokens <= 1, "position=", listed(said.positions), ", expected at most one of ", listed(kOnTokens),
               ", which are all added to tokens");
  check_possible(choice, "attention", said.attention, names.attention);
  if (own.contains("pooling")) check_possible(choice, "pooling", said.pooling, names.poolings);
  const auto shown = [&](const char* key) { return own.contains(key) ? std::string(key) + "=" + as_word(key, own[key]) : ""; };
  check_choice(!own.contains("reach") || has(said.positions, "relative"), shown("reach"), ", expected position=relative with it");
  check_choice(!own.contains("features") || said.attention == "kernel", "features=", choice.features,
               ", expected attention=kernel with it");
  check_choice(!own.contains("reduction") || said.attention == "pooled", shown("reduction"), ", expected attention=pooled with it");
}

// Attention without scores leaves out what would change them; without content scores are all there is.
void check_together(const Json& own, const Said& said) {
  if (said.attention != "soft" && said.attention != "hard") {
    const std::string expected = ", expected attention=soft or hard with it";
    check_choice(!said.scores, "position=", listed(said.positions), " is added to scores, of which attention=", said.attention, " has none",
                 expected);
    check_choice(!own.contains("soft_cap"), "soft_cap", expected);
    check_choice(said.content, "content=false", expected);
    check_choice(!said.other_pattern && (said.attention == "kernel" || !own.contains("pattern")),
                 "a pattern beside attention=", said.attention, expected);
  }
  check_choice(said.attention != "channel" || flag_at(own, "project_values"),
               "attention=channel needs values of every head, expected project_values=true with it");
  if (said.content) return;
  check_choice(said.scores || own.contains("pattern"), "content=false, expected one of ", listed(kInScores),
               " as position: without them all tokens are seen alike");
  for (const char* each : {"rotary", "relative_content"})
    check_choice(!has(said.positions, each), "position=", each, " beside content=false, expected content=true with it");
}

void check_heads(const Json& config, const Json& own, const Dialect& names) {
  const auto number = [&](const std::string& key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  const int64_t width = number(names.width[0]), heads = number(names.heads[0]);
  const bool any_width = config.contains("head_dim") || (!flag_at(own, "content") && !flag_at(own, "project_values"));
  check_choice(any_width || heads < 1 || width % heads == 0, "width=", width, " does not divide into heads=", heads,
               ", expected a multiple of it");
}

}  // namespace

void declare(Settings& settings, ModelChoice& choice) {
  Words names, keys, positions{""}, attention{""}, poolings{""};
  const auto join = [](Words& out, const Words& more) {
    for (const std::string& each : more)
      if (!has(out, each)) out.push_back(each);
  };
  for (const Preset& each : presets()) names.push_back(each.name);
  for (const Dialect& each : dialects()) {
    join(keys, each.keys());
    join(positions, each.positions);
    join(attention, each.attention);
    join(poolings, each.poolings);
  }
  const Allowed size{.least = 0, .most = 1e6}, flag{.words = {"", "true", "false"}};
  settings.heading("The model. Empty, 0 and shares of -1: as the preset has it");
  settings.add("preset", choice.preset, "the model to begin with, and its recipe", {.words = names});
  settings.add("layers", choice.layers, "how many, on each side of an encoder-decoder", size);
  settings.add("heads", choice.heads, "of attention", size);
  settings.add("width", choice.width, "of tokens", size);
  settings.add("feed_forward", choice.feed_forward, "the wide part of the layers between; 0: in proportion to width", size);
  settings.add("patch", choice.patch, "pixels of a side of a patch", size);
  settings.add("activation", choice.activation, "of the feed-forward layers",
               {.words = {"", "relu", "gelu", "gelu_new", "silu", "tanh", "sigmoid", "linear"}});
  settings.add("dropout", choice.dropout, "the share of numbers left out in training", {.least = -1, .most = 0.99});
  settings.add("stochastic_depth", choice.stochastic_depth,
               "the share of samples that pass by the last layer in training, and fewer by those before; 0: none",
               {.least = -1, .most = 0.99});
  settings.add("position", choice.position, "how tokens know where they stand", {.words = positions, .several = true});
  settings.add("reach", choice.reach, "of position=relative: the farthest distance that is told apart", size);
  settings.add("attention", choice.attention, "how queries meet keys", {.words = attention});
  settings.add("features", choice.features, "of attention=kernel", {.words = {"", "elu", "relu", "random"}});
  settings.add("reduction", choice.reduction, "of attention=pooled: keys that become one, along each side", size);
  settings.add("pattern", choice.pattern,
               "which keys are seen: causal, window:4, window:4:2:1 (before, after, globals), chunks:16, chunks:16:shifted, dilated:2, "
               "grid_window:2; several with commas");
  settings.add("soft_cap", choice.soft_cap, "scores are bent below it; 0: not", {.least = 0});
  settings.add("content", choice.content, "false: positions alone say where to look", flag);
  settings.add("project_values", choice.project_values, "false: the values of every head are the tokens themselves", flag);
  settings.add("pooling", choice.pooling, "from tokens to one vector", {.words = poolings});
  settings.add("norm", choice.norm, "where norms stand beside the branches", {.words = {"", "before", "after"}});
  settings.add_open("model.", choice.model, "keys of config.json: model.initializer_range=0.01; they win over all above",
                    [keys] { return keys; });
}

Json model_config(const ModelChoice& choice) {
  Json config = preset_named(choice.preset).config;
  const Dialect& names = dialect_of(config);
  const Words keys = names.keys();
  if (names.heads.empty())
    refuse_attention(choice);
  else
    choose_sizes(choice, names, config);
  if (!config.contains("heed")) config["heed"] = Json::object();
  choose_kind(choice, names, config["heed"]);
  for (const auto& [key, value] : choice.model.items()) check_possible(choice, "model.NAME", key, keys);
  config.merge_patch(choice.model.is_object() ? choice.model : Json::object());
  if (names.heads.empty()) return config;
  Json& own = config["heed"];
  check_choice(own.is_object(), "model.heed=", own.dump(), ", expected a key below it: model.heed.NAME=VALUE");

  const Said at_first(own, names.own);
  const bool said_content = !choice.content.empty() || (choice.model.contains("heed") && choice.model["heed"].contains("content"));
  if (!at_first.content && !at_first.scores && !said_content) own.erase("content");
  const Said said(own, names.own);
  check_words(choice, names, own, said);
  check_together(own, said);
  const bool grid_position = std::any_of(said.positions.begin(), said.positions.end(), [](auto& each) { return has(kOnGrids, each); });
  if ((grid_position || said.grid_pattern || said.attention == "pooled") && said.pooling == "cls") {
    check_choice(!own.contains("pooling"), "pooling=cls, but what was chosen needs a grid of patches alone, expected gap, map or flatten");
    own["pooling"] = "gap";
  }
  check_heads(config, own, names);
  // The architecture's own positions need no word of heed's, and beside others the word for them is "learned".
  if (own.contains("positions") && said.positions == Words{names.own}) own.erase("positions");
  if (own.contains("positions") && names.own == "sinusoidal")
    for (Json& each : own["positions"])
      if (each == "sinusoidal") each = "learned";
  if (own.empty()) config.erase("heed");
  return config;
}

}  // namespace heed
