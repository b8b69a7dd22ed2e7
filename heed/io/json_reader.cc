#include "heed/io/json_reader.h"

#include <sstream>

namespace heed {
namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

void JsonReader::expected(std::string_view what) const {
  const std::string value = in_quotes(json_->is_string() ? json_->get_ref<const std::string&>() : json_->dump(-1, ' ', true), 60);
  if (path_.empty()) refuse("found ", value, ", expected ", what);
  fail<FileError>(place(), " is ", value, ", expected ", what);
}

JsonReader JsonReader::operator[](std::string_view key) const {
  if (!json_->is_object()) expected("an object with " + in_quotes(key));
  const auto found = json_->find(key);
  if (found == json_->end()) refuse("found no ", in_quotes(key), ", expected one");
  const bool plain = key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == key.npos;
  std::string path = path_;
  if (plain)
    path.append(path.empty() ? "" : ".").append(key);
  else
    path.append("[").append(in_quotes(key)).append("]");
  return {*found, file_, std::move(path)};
}

JsonReader JsonReader::operator[](size_t i) const {
  if (i >= size()) refuse("found ", size(), " entries, expected at least ", i + 1);
  return {(*json_)[i], file_, path_ + "[" + std::to_string(i) + "]"};
}

size_t JsonReader::size() const {
  if (!json_->is_array()) expected("a list");
  return json_->size();
}

std::vector<JsonReader> JsonReader::list() const {
  std::vector<JsonReader> out;
  for (size_t i = 0; i < size(); ++i) out.push_back((*this)[i]);
  return out;
}

const Json& JsonReader::object() const {
  if (!json_->is_object()) expected("an object");
  return *json_;
}

std::string JsonReader::text() const {
  if (!json_->is_string()) expected("a string");
  return json_->get<std::string>();
}

bool JsonReader::flag() const {
  if (!json_->is_boolean()) expected("true or false");
  return json_->get<bool>();
}

int64_t JsonReader::whole(int64_t least, int64_t most) const {
  const bool fits = json_->is_number_integer() && (!json_->is_number_unsigned() || json_->get<uint64_t>() <= static_cast<uint64_t>(most));
  if (!fits || json_->get<int64_t>() < least || json_->get<int64_t>() > most)
    expected(least == -kAnyWhole ? "a whole number"
                                 : "a whole number of " + std::to_string(least) + " or more, and at most " + std::to_string(most));
  return json_->get<int64_t>();
}

double JsonReader::number(double least, double most) const {
  if (!json_->is_number()) expected("a number");
  const auto value = json_->get<double>();
  if (!(value >= least && value <= most))
    expected(least == -kAnyNumber ? "a finite number" : "a number from " + number_text(least) + " to " + number_text(most));
  return value;
}

}  // namespace heed
