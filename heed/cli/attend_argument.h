// One name=value argument of `heed attend` and the parsing of its value.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/check.h"
#include "heed/core/parse.h"
#include "heed/models/choices.h"

namespace heed::cli {

// Values that do not parse throw a UsageError that says what was expected.
struct AttendArgument {
  std::string name, text, expected;

  [[noreturn]] void refuse() const { fail<UsageError>("attend: ", name, "=", text, ", expected ", expected); }

  template <class T>
  T parsed(const std::string& part) const {
    const std::optional<T> value = parse_number<T>(part);
    if (!value) refuse();
    return *value;
  }
  std::vector<std::string> parts(char separator) const { return split(text, separator); }
  float number(float above = -std::numeric_limits<float>::infinity()) const {
    const auto value = parsed<float>(text);
    if (!std::isfinite(value) || value <= above) refuse();
    return value;
  }
  int64_t whole(const std::string& part, int64_t least) const {
    const auto value = parsed<int64_t>(part);
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (value < least) refuse();
    check<UsageError>(value <= most, "attend: ", name, "=", text, ", expected at most ", most);
    return value;
  }
  int64_t whole(int64_t least) const { return whole(text, least); }
  std::vector<int64_t> list() const {
    std::vector<int64_t> values;
    for (const std::string& part : parts(',')) values.push_back(whole(part, 0));
    return values;
  }
  std::array<int64_t, 2> pair(char separator, int64_t least) const {  // a single number is used twice
    const std::vector<std::string> found = parts(separator);
    if (found.size() > 2) refuse();
    return {whole(found.front(), least), whole(found.back(), least)};
  }
  bool boolean() const { return one_of<bool>({{"true", true}, {"false", false}, {"1", true}, {"0", false}}); }
  // The settings of a term, separated by commas or colons.
  TermValues settings(const TermInfo& info) const {
    std::string parts = text;
    std::replace(parts.begin(), parts.end(), ',', ':');
    if (text.empty()) refuse();
    try {
      return parse_settings(info, parts, ':');
    } catch (const Error& error) {
      fail<UsageError>("attend: ", name, "=", text, ": ", error.what());
    }
  }
  void add_setting(TermValues& values, const std::string& setting, double value) const {
    check<UsageError>(values.try_emplace(setting, value).second, "attend: ", name, "=", text, " sets ", setting, " again");
  }
  std::string choice(const char* key) const {  // the name in the list, for an alias too
    const Choice* found = choices(key).find(text);
    if (!found) refuse();
    return found->name;
  }
  template <class T>
  T one_of(const std::vector<std::pair<std::string, T>>& choices) const {
    for (const auto& [choice, value] : choices)
      if (text == choice) return value;
    refuse();
  }
};

}  // namespace heed::cli
