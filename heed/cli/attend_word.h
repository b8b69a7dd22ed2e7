// One word of the command line of `heed attend`, name=value, and how its value is read.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/check.h"

namespace heed::cli {

// What cannot be read is refused with what was expected.
struct AttendWord {
  std::string name, text, expected;

  [[noreturn]] void refuse() const { fail<UsageError>("attend: ", name, "=", text, ", expected ", expected); }

  template <class T>
  T parsed(const std::string& part) const {
    T value{};
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size()) refuse();
    return value;
  }
  std::vector<std::string> parts(char between) const {
    std::vector<std::string> found;
    std::istringstream in(text + between);
    for (std::string part; std::getline(in, part, between);) found.push_back(part);
    return found;
  }
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
  std::array<int64_t, 2> pair(char between, int64_t least) const {  // one number stands for two
    const std::vector<std::string> found = parts(between);
    if (found.empty() || found.size() > 2) refuse();
    return {whole(found.front(), least), whole(found.back(), least)};
  }
  bool yes() const { return one_of<bool>({{"true", true}, {"false", false}, {"1", true}, {"0", false}}); }
  template <class T>
  T one_of(const std::vector<std::pair<std::string, T>>& choices) const {
    for (const auto& [choice, value] : choices)
      if (text == choice) return value;
    refuse();
  }
};

}  // namespace heed::cli
