#include "heed/models/choices.h"

#include <algorithm>

#include "heed/core/nearest.h"
#include "heed/nn/encoder.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

template <class Enum>
int number(Enum value) {
  return static_cast<int>(value);
}

std::vector<Choice> with_terms(std::vector<Choice> out, TermUse use) {
  for (const TermInfo& each : term_infos())
    if (each.use == use)
      out.push_back({.name = each.name,
                     .aliases = each.aliases,
                     .summary = each.summary,
                     .source = each.source,
                     .needs_grid = each.needs_grid,
                     .needs_content = each.needs_content,
                     .needs_all_tokens = each.needs_all_tokens,
                     .term = &each});
  return out;
}

std::vector<Choice> positions() {
  return with_terms(
      {{.name = "none", .summary = "no positions"},
       {.name = "learned", .summary = "the architecture's own table, added to tokens", .on_tokens = true, .limits_tokens = true},
       {.name = "learned_2d",
        .summary = "learned embeddings of rows and columns, each half of the features, added to tokens",
        .source = "Dosovitskiy et al. 2021",
        .needs_grid = true,
        .on_tokens = true,
        .limits_tokens = true},
       {.name = "sinusoidal",
        .summary = "sines and cosines of the position, added to tokens",
        .source = "Vaswani et al. 2017",
        .on_tokens = true,
        .limits_tokens = true},
       {.name = "sinusoidal_2d", .summary = "the same for rows and columns", .needs_grid = true, .on_tokens = true, .limits_tokens = true},
       {.name = "rotary",
        .aliases = {"rope"},
        .summary = "rotates pairs of features of queries and keys by the position",
        .source = "Su et al. 2021",
        .needs_content = true,
        .limits_tokens = true}},
      TermUse::position);
}

std::vector<Choice> kinds() {
  using Kind = AttentionKind::Kind;
  return {{.name = "soft", .aliases = {"softmax"}, .summary = "softmax over the scores", .value = number(Kind::soft)},
          {.name = "hard", .summary = "the key with the largest score; its gradient is that of soft", .value = number(Kind::hard)},
          {.name = "linear",
           .aliases = {"kernel"},
           .summary = "features of queries and keys instead of the softmax; with the causal mask and lengths, no other terms",
           .source = "Katharopoulos et al. 2020",
           .value = number(Kind::linear),
           .takes_terms = false,
           .has_map = false},
          {.name = "channel",
           .summary = "channels attend to channels; no masks",
           .source = "Ding et al. 2022",
           .value = number(Kind::channel),
           .takes_masks = false,
           .takes_terms = false,
           .has_map = false},
          {.name = "pooled",
           .summary = "keys and values are averaged over squares of reduction x reduction tokens; no masks",
           .source = "Wang et al. 2021",
           .value = number(Kind::pooled),
           .needs_grid = true,
           .takes_masks = false,
           .takes_terms = false}};
}

}  // namespace

const std::vector<Choices>& all_choices() {
  static const std::vector<Choices> all{
      {"positions", "position", "position encodings, replacing the architecture's own", positions()},
      {"pattern", "pattern", "which keys a query sees", with_terms({}, TermUse::pattern)},
      {"attention", "attention", "kind of self-attention", kinds()},
      {"features",
       "features",
       "feature map of linear attention",
       {{.name = "elu", .summary = "x + 1 above 0, e^x below", .value = number(FeatureMap::elu)},
        {.name = "relu", .summary = "max(x, 0) + 0.001", .value = number(FeatureMap::relu)},
        {.name = "random",
         .aliases = {"exp"},
         .summary = "random features whose products are e^(q.k) on average",
         .source = "Choromanski et al. 2021",
         .value = number(FeatureMap::random)}}},
      {"pooling",
       "pooling",
       "how tokens are pooled into one vector",
       {{.name = "cls", .summary = "the class token", .value = number(Pooling::class_token), .needs_all_tokens = true},
        {.name = "gap", .summary = "the mean", .value = number(Pooling::mean), .needs_all_tokens = true},
        {.name = "map",
         .summary = "attention with one learned query",
         .source = "Zhai et al. 2022",
         .value = number(Pooling::attention),
         .needs_all_tokens = true},
        {.name = "flatten",
         .summary = "all tokens, concatenated",
         .value = number(Pooling::flatten),
         .needs_grid = true,
         .needs_all_tokens = true}}},
      {"norm",
       "norm",
       "placement of norms",
       {{.name = "before", .summary = "before the residual branches, and one after the layers", .value = number(NormPlace::before)},
        {.name = "after", .summary = "after the residual branches", .value = number(NormPlace::after)}}}};
  return all;
}

const Choices& choices(std::string_view key) {
  for (const Choices& each : all_choices())
    if (each.key == key) return each;
  fail("choices: there is no key ", key);
}

const Choice* Choices::find(const std::string& name) const {
  for (const Choice& each : all)
    if (each.name == name || std::find(each.aliases.begin(), each.aliases.end(), name) != each.aliases.end()) return &each;
  return nullptr;
}

std::vector<std::string> Choices::names() const {
  std::vector<std::string> out;
  for (const Choice& each : all) out.push_back(each.name);
  return out;
}

std::string Choices::expected(const std::string& typed) const {
  std::string out;
  for (const std::string& each : names()) out += (out.empty() ? "one of " : ", ") + each;
  return out + did_you_mean(typed, names());
}

const Choice& Choices::in(const Config& own) const {
  const std::string name = own.string(key, all[0].name);
  const Choice* found = find(name);
  if (!found) own.refuse(key, expected(name));
  return *found;
}

Json Chosen::json() const {
  Json out{{"kind", choice->name}};
  if (!choice->term || (given.empty() && !choice->term->masks)) return choice->name;
  for (const TermSetting& each : choice->term->settings) {
    const auto found = given.find(each.name);
    if (found == given.end()) continue;
    using Type = TermSetting::Type;
    out[each.name] = each.type == Type::flag    ? Json(found->second != 0)
                     : each.type == Type::whole ? Json(static_cast<int64_t>(found->second))
                                                : Json(found->second);
  }
  return out;
}

Chosen parse_chosen(const Choices& list, const std::string& text) {
  const size_t colon = text.find(':');
  const Choice* choice = list.find(text.substr(0, colon));
  const bool settings = choice && choice->term && !choice->term->settings.empty();
  if (!choice || (colon == std::string::npos ? settings && choice->term->masks : !settings)) {
    std::string usages;
    for (const Choice& each : list.all) usages += (usages.empty() ? "" : ", ") + (each.term ? each.term->usage() : each.name);
    fail("expected ", usages, "; trailing parts are optional");
  }
  if (colon == std::string::npos) return {choice};
  return {choice, parse_settings(*choice->term, text.substr(colon + 1), ':')};
}

std::vector<Chosen> chosen_in(const Config& own, std::string_view key) {
  std::vector<Chosen> out;
  if (!own.has(key)) return out;
  const Choices& list = choices(key);
  const std::string source = own.source() + ": heed." + list.key;
  const Json& found = own.json().at(list.key);
  for (const Json& each : found.is_array() ? found : Json::array({found})) {
    if (each.is_string() && !list.find(each.get<std::string>().substr(0, each.get<std::string>().find(':'))))
      own.refuse(key, list.expected(each.get<std::string>()));
    if (each.is_string()) {
      try {
        out.push_back(parse_chosen(list, each.get<std::string>()));
      } catch (const Error& error) {
        fail<FileError>(source, " ", each.dump(), ": ", error.what());
      }
      continue;
    }
    if (!each.is_object()) own.refuse(key, "a name, an object or a list of them");
    const Config object(each, source);
    const std::string kind = object.string("kind", "");
    const Choice* choice = list.find(kind);
    if (!choice) object.refuse("kind", list.expected(kind));
    Chosen& chosen = out.emplace_back(Chosen{choice});
    std::vector<std::string> known{"kind"};
    if (choice->term)
      for (const TermSetting& setting : choice->term->settings) {
        known.push_back(setting.name);
        if (object.has(setting.name)) chosen.given[setting.name] = setting_in(object, setting.name, setting);
      }
    for (const auto& [name, value] : each.items())
      check<FileError>(std::find(known.begin(), known.end(), name) != known.end(), source, ": ", choice->name, " has no setting ", name,
                       did_you_mean(name, known));
  }
  return out;
}

std::vector<std::string> chosen_names(const Json& value, const Choices& list) {
  std::vector<std::string> out;
  for (const Json& each : value.is_array() ? value : Json::array({value})) {
    const auto kind = each.is_object() ? each.find("kind") : each.end();
    const std::string text = each.is_string()                          ? each.get<std::string>()
                             : kind != each.end() && kind->is_string() ? kind->get<std::string>()
                                                                       : "";
    const Choice* found = list.find(text.substr(0, text.find(':')));
    if (!text.empty()) out.push_back(found ? found->name : text);
  }
  return out;
}

double setting_in(const Config& from, const std::string& key, const TermSetting& setting) {
  if (setting.type == TermSetting::Type::whole) return static_cast<double>(from.size(key, 0, static_cast<int64_t>(setting.least)));
  if (setting.type == TermSetting::Type::flag) return from.flag(key, false) ? 1 : 0;
  const float value = from.number(key, 0);
  if (!(value > setting.least)) from.refuse(key, setting.expected());
  return value;
}

}  // namespace heed
