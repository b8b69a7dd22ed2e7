#include "heed/serve/setting_json.h"

#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

constexpr double kAnything = 1e299;  // limits of Allowed that limit nothing

Json limit_json(double limit) { return limit < -kAnything || limit > kAnything ? Json() : Json(limit); }

}  // namespace

Json setting_json(const SettingInfo& info) {
  std::vector<std::string> choices = info.allowed.choices;
  choices.insert(choices.end(), info.allowed.synthetic.begin(), info.allowed.synthetic.end());
  return {{"key", info.key},
          {"heading", info.heading},
          {"type", info.type},
          {"default", info.value},
          {"help", info.meaning},
          {"choices", std::move(choices)},
          {"least", limit_json(info.allowed.least)},
          {"most", limit_json(info.allowed.most)},
          {"with_settings", info.allowed.with_settings}};
}

std::vector<std::string> assignments_in(const JsonReader& body) {
  std::vector<std::string> out;
  if (!body.has("settings")) return out;
  for (const auto& [key, value] : body["settings"].object().items()) {
    if (value.is_null()) continue;
    require(value.is_string() || value.is_number() || value.is_boolean(), 400, "body: settings.", key,
            ": expected a text, a number or true or false");
    out.push_back(key + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return out;
}

}  // namespace heed::serve
