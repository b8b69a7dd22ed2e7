// A part of a JSON document that knows its location, for error messages.
#pragma once

#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed::text {

class JsonPart {
 public:
  JsonPart(const Json& json, std::string location) : json_(&json), location_(std::move(location)) {}

  const Json& json() const { return *json_; }
  const std::string& location() const { return location_; }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(location_, ": ", parts...);
  }

  bool has(const std::string& key) const { return json_->is_object() && json_->contains(key) && !json_->at(key).is_null(); }
  JsonPart operator[](const std::string& key) const;  // must exist
  JsonPart operator[](size_t i) const;                // must exist
  size_t size() const;                                // must be a list

  std::string text() const;
  std::string text(const std::string& key) const { return (*this)[key].text(); }
  std::string text_or(const std::string& key, const std::string& fallback) const { return has(key) ? text(key) : fallback; }
  bool flag_or(const std::string& key, bool fallback) const;
  int64_t number() const;  // must be an integer
  int64_t number_or(const std::string& key, int64_t fallback) const { return has(key) ? (*this)[key].number() : fallback; }

  // The steps of {"type": "Sequence", key: [...]}, flattened; otherwise this object alone.
  std::vector<JsonPart> steps(const std::string& key) const;
  // Location and type, for error messages: "tokenizer.json.normalizer (Replace)"
  std::string description() const { return location_ + " (" + text("type") + ")"; }
  // Fails: the type of this part is not one of `known`.
  [[noreturn]] void unknown_type(const std::string& kind, const std::string& known) const;

 private:
  const Json* json_;
  std::string location_;
};

}  // namespace heed::text
