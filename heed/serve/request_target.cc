#include "heed/serve/request_target.h"

namespace heed::serve {
namespace {

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1, low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0 || high * 16 + low == 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

bool read_target(std::string_view target, Request& request) {
  constexpr std::string_view scheme = "http://";
  if (target.starts_with(scheme)) {  // the absolute form, whose host replaces the header
    const size_t end = std::min(target.find('/', scheme.size()), target.size());
    request.headers["host"] = target.substr(scheme.size(), end - scheme.size());
    target = end < target.size() ? target.substr(end) : "/";
  }
  if (!target.starts_with('/')) return false;
  const size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  request.path = path;
  for (size_t at = 1; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::optional<std::string> segment = percent_decoded(path.substr(at, end - at));
    if (!segment) return false;
    request.segments.push_back(*segment);
    at = end + 1;
  }
  if (mark == std::string_view::npos) return true;
  const std::string_view query = target.substr(mark + 1);
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string_view part = query.substr(at, end - at);
    const size_t equals = std::min(part.find('='), part.size());
    const auto key = percent_decoded(part.substr(0, equals), true);
    const auto value = percent_decoded(equals < part.size() ? part.substr(equals + 1) : "", true);
    if (!key || !value) return false;
    if (!key->empty()) request.query[*key] = *value;
    at = end + 1;
  }
  return true;
}

}  // namespace heed::serve
