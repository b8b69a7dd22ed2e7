#include "heed/text/aligned.h"

#include <algorithm>

#include "heed/core/check.h"

namespace heed::text {

Aligned::Aligned(std::string_view original) {
  check(original.size() < UINT32_MAX, "encode: found a text of ", original.size(), " bytes, expected less than ", UINT32_MAX);
  size_t bad = 0, at = find_bad_utf8(original, &bad), i = 0;
  if (at == original.npos) {
    text = original;
    same_ = true;
    limit_growth();
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
  limit_growth();
}

void Aligned::limit_growth() { max_bytes_ = std::min<size_t>(growth_limit(text.size()), UINT32_MAX - 4); }

void Aligned::fail_too_long() const {
  fail<TextTooLongError>("the text grew to more than ", max_bytes_, " bytes, expected at most 16 times its size plus 1024");
}

Span Aligned::source(size_t begin, size_t end) const {
  if (begin >= end) return {};
  if (!same_) {
    Span all = sources_[begin];
    for (size_t i = begin + 1; i < end; ++i)  // marks may have been reordered
      all = {std::min(all.begin, sources_[i].begin), std::max(all.end, sources_[i].end)};
    return all;
  }
  while (begin > 0 && !starts_char(text[begin])) --begin;
  while (end < text.size() && !starts_char(text[end])) ++end;
  return {begin_ + static_cast<uint32_t>(begin), begin_ + static_cast<uint32_t>(end)};
}

void Aligned::append(const Aligned& other, size_t begin, size_t end) {
  if (text.size() + (end - begin) > max_bytes_) fail_too_long();
  text.append(other.text, begin, end - begin);
  if (!other.same_) {
    sources_.insert(sources_.end(), other.sources_.begin() + static_cast<std::ptrdiff_t>(begin),
                    other.sources_.begin() + static_cast<std::ptrdiff_t>(end));
  } else {
    for (size_t i = begin, next = 0; i < end; i = next) {
      next = std::min(end, i + char_bytes(other.text[i]));
      sources_.insert(sources_.end(), next - i, {other.begin_ + static_cast<uint32_t>(i), other.begin_ + static_cast<uint32_t>(next)});
    }
  }
}

Aligned Aligned::next() const {
  Aligned out;
  out.max_bytes_ = max_bytes_;
  out.text.reserve(text.size() + 16);
  out.sources_.reserve(text.size() + 16);
  return out;
}

void Aligned::cut(Span part, Aligned& out) const {
  out.text.assign(text, part.begin, part.end - part.begin);
  out.max_bytes_ = max_bytes_;
  out.same_ = same_;
  out.begin_ = begin_ + part.begin;
  out.sources_.clear();
  if (!same_) out.sources_.assign(sources_.begin() + part.begin, sources_.begin() + part.end);
}

}  // namespace heed::text
