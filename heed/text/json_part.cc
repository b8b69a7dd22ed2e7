#include "heed/text/json_part.h"

namespace heed::text {

JsonPart JsonPart::operator[](const std::string& key) const {
  if (!json_->is_object()) refuse("found ", json_->type_name(), ", expected an object with ", in_quotes(key));
  if (!json_->contains(key)) refuse("found no ", in_quotes(key), ", expected one");
  return {json_->at(key), location_ + "." + key};
}

JsonPart JsonPart::operator[](size_t i) const {
  if (i >= size()) refuse("found ", size(), " entries, expected at least ", i + 1);
  return {json_->at(i), location_ + "[" + std::to_string(i) + "]"};
}

size_t JsonPart::size() const {
  if (!json_->is_array()) refuse("found ", json_->type_name(), ", expected a list");
  return json_->size();
}

std::string JsonPart::text() const {
  if (!json_->is_string()) refuse("found ", json_->type_name(), ", expected a string");
  return json_->get<std::string>();
}

bool JsonPart::flag_or(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const JsonPart part = (*this)[key];
  if (!part.json().is_boolean()) part.refuse("found ", part.json().type_name(), ", expected true or false");
  return part.json().get<bool>();
}

int64_t JsonPart::number() const {
  constexpr int64_t limit = int64_t{1} << 40;
  const bool whole = json_->is_number_integer() && (!json_->is_number_unsigned() || json_->get<uint64_t>() < limit);
  if (!whole || json_->get<int64_t>() <= -limit) refuse("found ", in_quotes(json_->dump(-1, ' ', true), 40), ", expected a whole number");
  return json_->get<int64_t>();
}

std::vector<JsonPart> JsonPart::steps(const std::string& key) const {
  if (text_or("type", "") != "Sequence") return {*this};
  const JsonPart list = (*this)[key];
  std::vector<JsonPart> out;
  for (size_t i = 0; i < list.size(); ++i)
    for (JsonPart& step : list[i].steps(key)) out.push_back(std::move(step));
  return out;
}

void JsonPart::unknown_type(const std::string& kind, const std::string& known) const {
  refuse("found the ", kind, " ", in_quotes(text("type")), ", expected one of ", known);
}

}  // namespace heed::text
