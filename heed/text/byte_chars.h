// The alphabet of byte-level BPE (Radford et al. 2019): every byte has a visible character. Printable bytes of Latin-1 are their
// own characters; the others follow from U+0100 on.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace heed::text {

const std::array<char32_t, 256>& byte_chars();
std::string to_byte_chars(std::string_view bytes);
// The bytes that the characters stand for. False: one of them stands for none.
bool from_byte_chars(std::string_view token, std::string& bytes);

}  // namespace heed::text
