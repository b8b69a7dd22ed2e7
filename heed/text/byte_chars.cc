#include "heed/text/byte_chars.h"

#include "heed/text/unicode.h"

namespace heed::text {
namespace {

std::array<char32_t, 256> make_byte_chars() {
  std::array<char32_t, 256> out{};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
    out[byte] = visible ? byte : next++;
  }
  return out;
}

}  // namespace

const std::array<char32_t, 256>& byte_chars() {
  static const std::array<char32_t, 256> chars = make_byte_chars();
  return chars;
}

std::string to_byte_chars(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_utf8(out, byte_chars()[static_cast<unsigned char>(byte)]);
  return out;
}

bool from_byte_chars(std::string_view token, std::string& bytes) {
  static const std::array<int, 512> byte_of = [] {
    std::array<int, 512> out{};
    out.fill(-1);
    for (int byte = 0; byte < 256; ++byte) out[byte_chars()[static_cast<size_t>(byte)]] = byte;
    return out;
  }();
  bytes.clear();
  for (size_t i = 0; i < token.size();) {
    const char32_t c = next_char(token, i);
    if (c >= byte_of.size() || byte_of[c] < 0) return false;
    bytes += static_cast<char>(byte_of[c]);
  }
  return true;
}

}  // namespace heed::text
