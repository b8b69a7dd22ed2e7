#include "heed/io/markup.h"

#include <cstdint>

namespace heed {
namespace {

// The size of a character by its first byte; 0: invalid.
size_t bytes_from(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first >= 0xf5) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

bool forbidden(char32_t point) { return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0xfffe || point == 0xffff; }

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::vector<Letter> letters_of(std::string_view text) {
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  std::vector<Letter> out;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t bytes = bytes_from(first);
    char32_t point = bytes <= 1 ? first : first & (0x7fu >> bytes);
    bool whole = bytes > 0 && at + bytes <= text.size();
    for (size_t i = 1; whole && i < bytes; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      whole = (next & 0xc0) == 0x80;
      point = point << 6 | (next & 0x3f);
    }
    whole = whole && point >= least[bytes] && point <= 0x10ffff && !(point >= 0xd800 && point < 0xe000);
    out.push_back({whole ? point : 0xfffd, text.substr(at, whole ? bytes : 1)});
    at += out.back().bytes.size();
  }
  return out;
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const Letter& letter : letters_of(text)) {
    switch (letter.point) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case 0xfffd: out += "\xef\xbf\xbd"; break;
      default: out += forbidden(letter.point) ? "\xef\xbf\xbd" : letter.bytes;
    }
  }
  return out;
}

std::string base64(std::span<const std::byte> bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t i) { return at + i < bytes.size() ? std::to_integer<uint32_t>(bytes[at + i]) : 0; };
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? kDigits[three >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t digit = kDigits.find(text[at]);
    if (digit == kDigits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (at % 4 != 0) out.push_back(static_cast<std::byte>(bits >> (6 - 2 * (at % 4)) & 255));
  }
  return out;
}

}  // namespace heed
