// Tokens in readable form.
#include <numeric>

#include "heed/text/byte_chars.h"
#include "heed/text/tokenizer_parts.h"
#include "heed/text/unicode.h"

namespace heed {
namespace {

constexpr const char *kShownSpace = "\u00b7", *kShownNewline = "\u23ce", *kShownTab = "\u21e5";

// Byte-level tokenizers are recognized by their decoder: it maps U+0120 to a space.
bool is_byte_level(const text::Decoder& decoder) {
  std::vector<std::string> tokens{"\u0120"};
  decoder(tokens);
  return std::accumulate(tokens.begin(), tokens.end(), std::string()) == " ";
}

// The byte of a byte-fallback token "<0x0A>".
std::optional<char> fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  if (!isxdigit(static_cast<unsigned char>(token[3])) || !isxdigit(static_cast<unsigned char>(token[4]))) return std::nullopt;
  return static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16));
}

std::string byte_name(char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  return std::string("<0x") + digits[value >> 4] + digits[value & 15] + ">";
}

// Spaces and control characters become visible marks, invalid UTF-8 <0xNN>.
std::string visible(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    if (text::find_bad_utf8(bytes.substr(at)) == 0) {
      out += byte_name(bytes[at++]);
      continue;
    }
    const size_t begin = at;
    const char32_t c = text::next_char(bytes, at);
    if (c == ' ' || c == 0x2581) {
      out += kShownSpace;
    } else if (c == '\n') {
      out += kShownNewline;
    } else if (c == '\t') {
      out += kShownTab;
    } else if (c < 0x20 || c == 0x7f) {
      text::append_utf8(out, c == 0x7f ? 0x2421 : 0x2400 + c);
    } else {
      out += bytes.substr(begin, at - begin);
    }
  }
  return out;
}

}  // namespace

std::string Tokenizer::display(int64_t id) const {
  if (!has(id)) return std::to_string(id);
  const std::string& raw = token(id);
  if (parts_->added.find(id)) return visible(raw);
  if (const std::optional<char> byte = fallback_byte(raw)) return visible(std::string_view(&*byte, 1));
  std::string bytes;
  return is_byte_level(parts_->decoder) && text::from_byte_chars(raw, bytes) ? visible(bytes) : visible(raw);
}

}  // namespace heed
