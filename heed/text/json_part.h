// A part of a JSON document that knows its place in it, so that every complaint can name the place.
#pragma once

#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed::text {

class JsonPart {
 public:
  JsonPart(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const Json& json() const { return *json_; }
  const std::string& place() const { return place_; }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(place_, ": ", parts...);
  }

  bool has(const std::string& key) const { return json_->is_object() && json_->contains(key) && !json_->at(key).is_null(); }
  JsonPart operator[](const std::string& key) const;  // must be there
  JsonPart operator[](size_t i) const;                // likewise
  size_t size() const;                                // of a list, which this must be

  std::string text() const;
  std::string text(const std::string& key) const { return (*this)[key].text(); }
  std::string text_or(const std::string& key, const std::string& otherwise) const { return has(key) ? text(key) : otherwise; }
  bool flag_or(const std::string& key, bool otherwise) const;
  int64_t number() const;  // a whole one
  int64_t number_or(const std::string& key, int64_t otherwise) const { return has(key) ? (*this)[key].number() : otherwise; }

  // The parts of a list under `key`, or of this object alone: {"type": "Sequence", key: [...]}.
  std::vector<JsonPart> steps(const std::string& key) const;
  // Its place and its type, for complaints about what it does: tokenizer.json.normalizer (Replace)
  std::string named() const { return place_ + " (" + text("type") + ")"; }
  // This part has a type heed does not know, or a setting it does not follow.
  [[noreturn]] void unknown_type(const std::string& kind, const std::string& known) const;

 private:
  const Json* json_;
  std::string place_;
};

}  // namespace heed::text
