// Text and bytes as they may stand in SVG and HTML.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct Letter {
  char32_t point;          // U+FFFD for a byte that is no UTF-8
  std::string_view bytes;  // in the text
};
std::vector<Letter> letters_of(std::string_view text);

std::string in_markup(std::string_view text);  // between tags and in quotes; what XML forbids becomes U+FFFD
std::string base64(std::span<const std::byte> bytes);
std::optional<std::vector<std::byte>> from_base64(std::string_view text);  // nothing where it is none

}  // namespace heed
