// The choices for the object "heed" of config.json and for key=value settings, in one list: positions, patterns, kinds of attention,
// feature maps, poolings and norms. Score terms describe themselves (attention/term_info.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/terms.h"
#include "heed/core/api.h"
#include "heed/models/config.h"

namespace HEED_API heed {

struct Choice {
  std::string name;
  std::vector<std::string> aliases = {};  // other names that are read
  std::string summary, source = {};       // one line each; source: the paper
  int value = 0;                          // of the corresponding C++ enum
  bool needs_grid = false;                // tokens of an image without class token; of a pooling: a fixed number of tokens
  bool needs_content = false;             // queries and keys
  bool needs_all_tokens = false;          // at once, so that it cannot generate text token by token
  bool on_tokens = false;                 // positions that are added to tokens
  bool limits_tokens = false;             // positions from a table of limited length
  bool takes_masks = true;                // kinds of attention: supports the causal mask and lengths
  bool takes_terms = true;                // kinds of attention: supports any score term
  bool has_map = true;                    // kinds of attention: computes a weight for every query and key
  const TermInfo* term = nullptr;         // if it is a score term
};

// The choices for one key.
struct Choices {
  std::string key;      // in the object "heed"
  std::string setting;  // of key=value
  std::string meaning;  // one line
  std::vector<Choice> all;

  const Choice* find(const std::string& name) const;  // by name or alias; null: there is none
  std::vector<std::string> names() const;
  std::string expected(const std::string& typed) const;  // "one of a, b; did you mean 'a'?"
  // The one that config.json chooses: the first unless it has the key.
  const Choice& in(const Config& own) const;
};
const std::vector<Choices>& all_choices();
const Choices& choices(std::string_view key);

// A choice with some of its settings.
struct Chosen {
  const Choice* choice;
  TermValues given = {};

  Json json() const;  // the name, or {"kind": name, setting: value}
};
// "window:4:2": the name, then its settings in order. Trailing settings may be omitted, except the first setting of a pattern.
Chosen parse_chosen(const Choices& list, const std::string& text);
// A value in config.json: a string as above, {"kind": name, setting: value}, or a list of these.
std::vector<Chosen> chosen_in(const Config& own, std::string_view key);
// Only the names in such a value; other errors in it are ignored.
std::vector<std::string> chosen_names(const Json& value, const Choices& list);

double setting_in(const Config& from, const std::string& key, const TermSetting& setting);

}  // namespace heed
