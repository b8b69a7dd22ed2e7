// Values in text: numbers, lists, key=value.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace heed {

// nullopt unless the whole text is a number.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T out{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end ? std::optional(out) : std::nullopt;
}

// The parts between separators: "a,,b" has three.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out{""};
  for (const char letter : text) {
    if (letter == separator)
      out.emplace_back();
    else
      out.back() += letter;
  }
  return out;
}

struct KeyValue {
  std::string key, value;
};
// Cuts at the first =; nullopt if there is none.
inline std::optional<KeyValue> parse_key_value(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return std::nullopt;
  return KeyValue{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

}  // namespace heed
