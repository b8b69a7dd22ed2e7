// The alphabet of byte-level BPE (Radford et al. 2019): every byte maps to a printable character. Printable Latin-1 bytes map to
// themselves, the others to U+0100 and up.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace heed::text {

const std::array<char32_t, 256>& byte_chars();
std::string to_byte_chars(std::string_view bytes);
// Maps characters back to bytes; false if a character maps to no byte.
bool from_byte_chars(std::string_view token, std::string& bytes);

}  // namespace heed::text
