// Components of tokenizer.json: objects with a type, and sequences of them.
#pragma once

#include "heed/io/json_reader.h"

namespace heed::text {

// The steps of {"type": "Sequence", key: [...]}, flattened; otherwise this object alone.
inline std::vector<JsonReader> steps_of(const JsonReader& json, const std::string& key) {
  if (json.text_or("type", "") != "Sequence") return {json};
  std::vector<JsonReader> out;
  for (const JsonReader& each : json[key].list())
    for (JsonReader& step : steps_of(each, key)) out.push_back(std::move(step));
  return out;
}

// For error messages: "tokenizer.json: normalizer (Replace)"
inline std::string step_name(const JsonReader& json) { return json.place() + " (" + json.text("type") + ")"; }

[[noreturn]] inline void refuse_type(const JsonReader& json, const std::string& kind, const std::string& known) {
  json.refuse("found the ", kind, " ", in_quotes(json.text("type")), ", expected one of ", known);
}

}  // namespace heed::text
