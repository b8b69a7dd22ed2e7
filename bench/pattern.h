// Regular expressions (POSIX, extended). Not <regex>: g++ 12 warns inside it when it builds with sanitizers.
#pragma once

#include <regex.h>

#include <string>

#include "heed/core/check.h"

namespace heed::bench {

class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    check<UsageError>(regcomp(&compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB) == 0, "bench: '", text, "' is not a regular expression");
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  bool found_in(const std::string& text) const { return regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0; }

 private:
  regex_t compiled_;
};

}  // namespace heed::bench
