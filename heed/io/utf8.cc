#include "heed/io/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace heed {

size_t ascii_prefix(std::string_view text, size_t i) {
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

size_t find_bad_utf8(std::string_view text, size_t* bad) {
  for (size_t i = 0; (i = ascii_prefix(text, i)) < text.size();) {
    const auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
    const unsigned first = byte(0);
    const size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    // Range of the second byte: excludes overlong forms, surrogates and code points above 0x10FFFF.
    const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80, high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    size_t good = bytes == 0 ? 0 : 1;
    if (bytes > 1 && byte(1) >= low && byte(1) <= high)
      for (good = 2; good < bytes && (byte(good) & 0xC0) == 0x80;) ++good;
    if (bytes == 0 || good < bytes) {
      if (bad) *bad = std::max<size_t>(good, 1);
      return i;
    }
    i += bytes;
  }
  return text.npos;
}

}  // namespace heed
