#include "heed/train/settings_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "heed/core/nearest.h"

namespace heed {
namespace {

// The shortest text that parse_number reads as the same number.
template <class T>
std::string shortest(T number) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

std::string bound_text(double bound) {
  return bound == std::floor(bound) && std::abs(bound) < 1e15 ? shortest(static_cast<int64_t>(bound)) : shortest(bound);
}

std::string bounds_text(const Allowed& allowed) {
  const bool below = allowed.least > -1e300, above = allowed.most < 1e300;
  if (below && above) return bound_text(allowed.least) + " to " + bound_text(allowed.most);
  return below ? bound_text(allowed.least) + " or more" : "at most " + bound_text(allowed.most);
}

template <class T>
T parsed(const std::string& key, const std::string& text, const Allowed& allowed) {
  const std::optional<T> number = parse_number<T>(text);
  const std::optional<double> wide = parse_number<double>(text);  // as double, since 0.1f is larger than a bound of 0.1
  check(number && wide && std::isfinite(*wide), key, "=", quoted(text), ", expected a ",
        std::is_same_v<T, float> ? "number" : "whole number", std::is_unsigned_v<T> ? " of 0 or more" : "");
  check(allowed.least <= *wide && *wide <= allowed.most, key, "=", text, ", expected ", bounds_text(allowed));
  return *number;
}

}  // namespace

std::string listed(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts)
    if (!text.empty()) out += (out.empty() ? "" : ", ") + text;
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = in_quotes(text);
  out.front() = out.back() = '\'';
  return out;
}

KeyValue key_value_in(const std::string& command, const std::string& argument) {
  std::optional<KeyValue> out = parse_key_value(argument);
  check<UsageError>(out && !out->key.empty(), command, ": found ", quoted(argument), ", expected key=value");
  return *std::move(out);
}

void parse_value(std::string& bound, const std::string& key, const std::string& text, const Allowed& allowed) {
  const std::vector<std::string>& choices = allowed.choices;
  std::string joined, separator;
  for (const std::string& value : allowed.several ? split(text, ',') : std::vector{text}) {
    const size_t end = allowed.with_settings ? std::min(value.find(':'), value.size()) : value.size();
    const std::string typed = value.substr(0, end);
    const auto alias = allowed.aliases.find(typed);
    const std::string name = alias == allowed.aliases.end() ? typed : alias->second;
    check(choices.empty() || std::find(choices.begin(), choices.end(), name) != choices.end(), key, "=", quoted(text), ", expected ",
          allowed.several ? "some of " : "one of ", listed(choices), allowed.hint, did_you_mean(typed, choices));
    joined += separator + name + value.substr(end);
    separator = ",";
  }
  bound = joined;
}
void parse_value(int64_t& bound, const std::string& key, const std::string& text, const Allowed& allowed) {
  bound = parsed<int64_t>(key, text, allowed);
}
void parse_value(uint64_t& bound, const std::string& key, const std::string& text, const Allowed& allowed) {
  bound = parsed<uint64_t>(key, text, allowed);
}
void parse_value(float& bound, const std::string& key, const std::string& text, const Allowed& allowed) {
  bound = parsed<float>(key, text, allowed);
}
void parse_value(bool& bound, const std::string& key, const std::string& text, const Allowed&) {
  check(text == "true" || text == "false", key, "=", quoted(text), ", expected true or false");
  bound = text == "true";
}

std::string value_text(const std::string& value) { return value; }
std::string value_text(int64_t value) { return shortest(value); }
std::string value_text(uint64_t value) { return shortest(value); }
std::string value_text(float value) { return shortest(value); }
std::string value_text(bool value) { return value ? "true" : "false"; }
Json value_json(float value) { return parse_number<double>(shortest(value)).value_or(value); }

std::string choices_text(const Allowed& allowed) {
  return allowed.choices.empty() ? "" : " (" + listed(allowed.choices) + (allowed.several ? "; comma-separated)" : ")");
}

Json guess_json(const std::string& text) {
  try {
    return parse_json("", text);
  } catch (const FileError&) {  // not JSON
  }
  if (text.find(',') == std::string::npos || text.find_first_of("[{\"") != std::string::npos) return text;
  Json out = Json::array();
  for (const std::string& part : split(text, ',')) out.push_back(guess_json(part));
  return out;
}

std::string list_text(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const Json& each : value) {
    check(each.is_primitive(), key, ": found lists or tables in a list, expected numbers and strings");
    if (!out.empty()) out += ',';
    out += list_text(key, each);
  }
  return out;
}

void check_writable(const std::string& key, const Json& value) {
  std::string text;
  try {
    text = value.dump();
  } catch (const Json::exception&) {
    fail(key, ": found text that is not UTF-8, expected UTF-8");
  }
  check(!value.is_null(), key, ": found null, expected a value");
  check(!value.is_number_unsigned() || value.get<uint64_t>() >> 63 == 0, key, ": found ", text, ", expected a smaller number");
  if (value.is_structured())
    for (const Json& each : value) check_writable(key, each);
}

}  // namespace heed
