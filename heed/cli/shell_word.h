// Words for commands that are printed to be copied.
#pragma once

#include <string>

namespace heed::cli {

// In quotes if a shell would not read it as one word.
inline std::string shell_word(const std::string& text) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:,@%+";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return text;
  std::string out = "'";
  for (const char letter : text) out += letter == '\'' ? "'\\''" : std::string(1, letter);
  return out + "'";
}

}  // namespace heed::cli
