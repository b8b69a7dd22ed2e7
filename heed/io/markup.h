// Escaping for SVG and HTML, base64.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"

namespace HEED_API heed {

struct Letter {
  char32_t point;          // U+FFFD for an invalid byte
  std::string_view bytes;  // view into the text
};
std::vector<Letter> letters_of(std::string_view text);

std::string escape_markup(std::string_view text);  // escaped for elements and attributes; characters that XML forbids become U+FFFD
std::string base64(std::span<const std::byte> bytes);
std::optional<std::vector<std::byte>> from_base64(std::string_view text);  // nullopt if invalid

}  // namespace heed
