// Values of settings as text and back. Errors name key, value and what was expected, and leave it to others to say where they stood.
#pragma once

#include "heed/train/settings.h"

namespace heed {

// What a text says of a key, into what is bound to it.
void take_value(std::string& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void take_value(int64_t& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void take_value(uint64_t& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void take_value(float& bound, const std::string& key, const std::string& text, const Allowed& allowed);
void take_value(bool& bound, const std::string& key, const std::string& text, const Allowed& allowed);
inline void take_value(Json& bound, const std::string&, const std::string& text, const Allowed&) { bound = text; }

// The shortest that take_value takes for the same value; and as JSON, where 0.1f is 0.1.
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

std::string words_text(const Allowed& allowed);  // " (a, b)", or nothing where there are no words

// What key=value means where nobody knows the kind of value: JSON, a list with commas, a word.
Json guessed(const std::string& text);
// The other way round: lists of scalars become words with commas.
std::string as_word(const std::string& key, const Json& value);
// Only what Settings::toml() can write and read() takes back.
void check_writable(const std::string& key, const Json& value);

std::string listed(const std::vector<std::string>& words);         // "a, b"; empty ones are left out
std::string quoted(const std::string& text);                       // safe to show, as in_quotes
std::vector<std::string> split(const std::string& text, char at);  // "a,,b" has three parts

}  // namespace heed
