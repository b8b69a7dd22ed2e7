// Conversion of setting values from and to text. Errors name key, value and what was expected; callers add the source.
#pragma once

#include "heed/core/parse.h"
#include "heed/train/settings.h"

namespace heed {

// Parses `text` into `bound`; error if it is not allowed.
void parse_value(std::string& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void parse_value(int64_t& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void parse_value(uint64_t& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void parse_value(float& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void parse_value(bool& bound, const std::string& key, const std::string& text, const Allowed& allowed);
inline void parse_value(Json& bound, const std::string&, const std::string& text, const Allowed&) { bound = text; }

// The shortest text that parse_value reads as the same value; and as JSON, where 0.1f is 0.1.
std::string value_text(const std::string& value);
std::string value_text(int64_t value);
std::string value_text(uint64_t value);
std::string value_text(float value);
std::string value_text(bool value);
Json value_json(float value);
template <class T>
Json value_json(const T& value) {
  return value;
}

std::string choices_text(const Allowed& allowed);  // " (a, b)", or "" if any value is allowed

// Parses a value of unknown type: JSON, a comma-separated list, or a string.
Json guess_json(const std::string& text);
// The inverse: lists of scalars become comma-separated text.
std::string list_text(const std::string& key, const Json& value);
// Error unless Settings::toml() can write the value and read() reads it back.
void check_writable(const std::string& key, const Json& value);

std::string listed(const std::vector<std::string>& texts);  // "a, b", without empty strings
std::string quoted(const std::string& text);                // in single quotes, escaped like in_quotes

// An argument "key=value"; a UsageError in the name of the command if it is none.
KeyValue key_value_in(const std::string& command, const std::string& argument);

}  // namespace heed
