#include "heed/text/aligned.h"

#include "heed/core/check.h"

namespace heed::text {

Aligned::Aligned(std::string_view original) {
  check(original.size() < UINT32_MAX, "encode: found a text of ", original.size(), " bytes, expected less than ", UINT32_MAX);
  size_t bad = 0, at = find_bad_utf8(original, &bad), i = 0;
  if (at == original.npos) {
    text = original;
    same_ = true;
    return;
  }
  const auto span = [](size_t begin, size_t end) { return Span{static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}; };
  while (i < original.size()) {
    const size_t end = at == original.npos ? original.size() : i + at;
    while (i < end) {
      const size_t begin = i;
      const char32_t c = next_char(original, i);
      append(c, span(begin, i));
    }
    if (at == original.npos) break;
    append(kReplacement, span(end, end + bad));
    i = end + bad;
    at = find_bad_utf8(original.substr(i), &bad);
  }
}

Span Aligned::source(size_t begin, size_t end) const {
  if (!same_) return begin < end ? Span{sources_[begin].begin, sources_[end - 1].end} : Span{};
  while (begin > 0 && begin < text.size() && !starts_char(text[begin])) --begin;
  while (end < text.size() && !starts_char(text[end])) ++end;
  return {begin_ + static_cast<uint32_t>(begin), begin_ + static_cast<uint32_t>(end)};
}

Aligned Aligned::next() const {
  Aligned out;
  out.text.reserve(text.size() + 16);
  out.sources_.reserve(text.size() + 16);
  return out;
}

void Aligned::cut(Span part, Aligned& out) const {
  out.text.assign(text, part.begin, part.end - part.begin);
  out.same_ = same_;
  out.begin_ = begin_ + part.begin;
  out.sources_.clear();
  if (!same_) out.sources_.assign(sources_.begin() + part.begin, sources_.begin() + part.end);
}

}  // namespace heed::text
