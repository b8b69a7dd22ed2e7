#include "heed/text/normalizer.h"

#include <algorithm>

#include "heed/text/json_steps.h"
#include "heed/text/pattern.h"

namespace heed::text {
namespace {

// A decomposed character. change, as in the package `tokenizers`: 0 replaces one character, 1 is inserted after it, -n replaces n more.
struct Part {
  char32_t c;
  int order;  // its combining class
  int change;
};

// sink(part) for every decomposed character, in canonical order.
template <class Sink>
void decompose_all(const Aligned& in, bool compatible, const Sink& sink) {
  std::vector<char32_t> parts;
  std::vector<Part> marks;
  const auto flush = [&] {
    std::stable_sort(marks.begin(), marks.end(), [](const Part& a, const Part& b) { return a.order < b.order; });
    for (const Part& mark : marks) sink(mark);
    marks.clear();
  };
  for (size_t i = 0; i < in.text.size();) {
    decompose(next_char(in.text, i), compatible, parts);
    for (size_t k = 0; k < parts.size(); ++k) {
      const Part part{parts[k], combining_class(parts[k]), k == 0 ? 0 : 1};
      if (part.order != 0) {
        marks.push_back(part);
      } else {
        flush();
        sink(part);
      }
    }
  }
  flush();
}

// Takes characters in canonical order, composes them where possible and passes them to `sink`.
template <class Sink>
class Composer {
 public:
  explicit Composer(const Sink& sink) : sink_(sink) {}

  void operator()(const Part& part) {
    // Characters outside these ranges never compose with a preceding one.
    const bool joins = part.c >= 0x300 && (part.c < 0x3400 || part.c >= 0x11000);
    if (joins && !pending_.empty() && pending_.front().order == 0 && (pending_.size() == 1 || pending_.back().order < part.order))
      if (const char32_t combined = compose_pair(pending_.front().c, part.c)) {
        pending_.front().c = combined;
        pending_.front().change += part.change - 1;
        return;
      }
    if (part.order == 0) flush();
    pending_.push_back(part);
  }
  void flush() {
    for (const Part& part : pending_) sink_(part);
    pending_.clear();
  }

 private:
  const Sink& sink_;
  std::vector<Part> pending_;  // a starter (class 0) and the marks after it
};

// Source spans of normalized characters, by the rule of the package `tokenizers`: each takes the next source character; a composed one
// skips the other characters it replaces; an inserted one shares the span before it. Reordered marks therefore keep the source order.
class SourceSpans {
 public:
  explicit SourceSpans(const Aligned& in) : in_(in) {}

  Span of(const Part& part) {
    if (part.change > 0) return last_;
    last_ = next();
    const Span place = last_;
    for (int skipped = part.change; skipped < 0; ++skipped) last_ = next();
    return place;
  }

 private:
  Span next() {
    if (at_ >= in_.text.size()) return last_;
    const size_t begin = at_;
    at_ += char_bytes(in_.text[at_]);
    return in_.source(begin, at_);
  }

  const Aligned& in_;
  size_t at_ = 0;
  Span last_;
};

void append_lower(Aligned& out, char32_t c, Span source) {
  out.append(lower(c), source);
  if (c == kDottedCapitalI) out.append(kDotAbove, source);
}

void lowercase(Aligned& text) {
  if (is_ascii(text.text)) {
    for (char& c : text.text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    return;
  }
  Aligned out = text.next();
  each_char(text, [&](char32_t c, Span source) { append_lower(out, c, source); });
  text = std::move(out);
}

template <class Keep>
void filter(Aligned& text, const Keep& keep) {
  Aligned out = text.next();
  each_char(text, [&](char32_t c, Span source) {
    if (keep(c)) out.append(c, source);
  });
  text = std::move(out);
}

void strip(Aligned& text, bool left, bool right) {
  size_t begin = 0, end = text.text.size();
  while (left && begin < end && is_space(char_at(text.text, begin))) begin += char_bytes(text.text[begin]);
  while (right && end > begin && is_space(char_at(text.text, char_before(text.text, end)))) end = char_before(text.text, end);
  if (begin == 0 && end == text.text.size()) return;
  Aligned out;
  text.cut({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, out);
  text = std::move(out);
}

void replace(Aligned& text, const Finder& find, const std::string& content) {
  std::vector<Span> matches;
  find(text.text, matches);
  if (matches.empty()) return;
  Aligned out = text.next();
  size_t at = 0;
  for (const Span match : matches) {
    out.append(text, at, match.begin);
    out.append(content, text.source(match.begin, match.end));
    at = match.end;
  }
  out.append(text, at, text.text.size());
  text = std::move(out);
}

// The normalizer Nmt: drops control characters, turns unusual spaces into plain ones.
void clean_for_translation(Aligned& text) {
  const auto is_dropped_char = [](char32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  };
  const auto spaced = [](char32_t c) {
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
           c == 0x2581 || c == 0xFEFF || c == kReplacement;
  };
  Aligned out = text.next();
  each_char(text, [&](char32_t c, Span source) {
    if (!is_dropped_char(c)) out.append(spaced(c) ? U' ' : c, source);
  });
  text = std::move(out);
}

std::string from_base64(const JsonReader& json) {
  const std::string text = json.text();
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) json.refuse("found ", in_quotes(std::string(1, c)), ", expected base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) out += static_cast<char>(bits >> (held -= 8));
  }
  return out;
}

Normalizer make_normalizer_step(const JsonReader& json) {
  const std::string type = json.text("type");
  if (type == "BertNormalizer") {
    BertNormalizer bert;
    bert.clean_text = json.flag_or("clean_text", true);
    bert.handle_chinese = json.flag_or("handle_chinese_chars", true);
    bert.lowercase = json.flag_or("lowercase", true);
    bert.strip_accents = json.flag_or("strip_accents", bert.lowercase);
    return bert;
  }
  for (const auto& [name, form] : {std::pair("NFC", Form::nfc), {"NFD", Form::nfd}, {"NFKC", Form::nfkc}, {"NFKD", Form::nfkd}})
    if (type == name) return [form = form](Aligned& text) { normalize_form(text, form); };
  if (type == "Lowercase") return lowercase;
  if (type == "StripAccents")
    return [](Aligned& text) {
      if (!is_ascii(text.text)) filter(text, [](char32_t c) { return !(classes_of(c) & kMark); });
    };
  if (type == "Strip")
    return
        [left = json.flag_or("strip_left", true), right = json.flag_or("strip_right", true)](Aligned& text) { strip(text, left, right); };
  if (type == "Replace")
    return [find = find_pattern(json["pattern"]), content = json.text("content")](Aligned& text) { replace(text, find, content); };
  if (type == "Prepend")
    return [prefix = json.text("prepend")](Aligned& text) {
      if (text.text.empty()) return;
      Aligned out = text.next();
      out.append(prefix, text.source(0, char_bytes(text.text[0])));
      out.append(text, 0, text.text.size());
      text = std::move(out);
    };
  if (type == "Nmt") return clean_for_translation;
  if (type == "Precompiled") return make_precompiled(from_base64(json["precompiled_charsmap"]), json.place());
  refuse_type(json, "normalizer",
              "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, Precompiled, Sequence");
}

}  // namespace

Normalizer make_normalizer(const JsonReader& json) {
  std::vector<Normalizer> steps;
  for (const JsonReader& step : steps_of(json, "normalizers"))
    steps.push_back(
        [apply = make_normalizer_step(step), name = step_name(step)](Aligned& text) { with_step_name(name, [&] { apply(text); }); });
  if (steps.size() == 1) return steps.front();
  return [steps](Aligned& text) {
    for (const Normalizer& step : steps) step(text);
  };
}

void normalize_form(Aligned& text, Form form) {
  if (is_ascii(text.text)) return;
  Aligned out = text.next();
  SourceSpans source_spans(text);
  const auto append = [&](const Part& part) { out.append(part.c, source_spans.of(part)); };
  const bool compatible = form == Form::nfkc || form == Form::nfkd;
  if (form == Form::nfc || form == Form::nfkc) {
    Composer composer(append);
    decompose_all(text, compatible, [&composer](const Part& part) { composer(part); });
    composer.flush();
  } else {
    decompose_all(text, compatible, append);
  }
  text = std::move(out);
}

void BertNormalizer::operator()(Aligned& text) const {
  const auto is_dropped = [](char32_t c) {
    return c == 0 || c == kReplacement || ((classes_of(c) & kControl) && c != '\t' && c != '\n' && c != '\r');
  };
  const bool ascii = is_ascii(text.text);
  const bool dropping = clean_text && (!ascii || std::any_of(text.text.begin(), text.text.end(),
                                                             [&](char c) { return is_dropped(static_cast<char32_t>(c)); }));
  if (ascii && !dropping) {  // all offsets stay the same
    for (char& c : text.text) {
      if (clean_text && (c == '\t' || c == '\n' || c == '\r')) c = ' ';
      if (lowercase && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    }
    return;
  }
  if (clean_text || handle_chinese) {
    Aligned out = text.next();
    each_char(text, [&](char32_t c, Span source) {
      if (clean_text && is_dropped(c)) return;
      const bool is_ideograph = handle_chinese && (classes_of(c) & kIdeograph);
      if (is_ideograph) out.append(U' ', source);
      out.append(clean_text && is_space(c) ? U' ' : c, source);
      if (is_ideograph) out.append(U' ', source);
    });
    text = std::move(out);
  }
  if (!strip_accents) {
    if (lowercase) heed::text::lowercase(text);
    return;
  }
  Aligned out = text.next();
  SourceSpans source_spans(text);
  decompose_all(text, false, [&](const Part& part) {
    const Span source = source_spans.of(part);
    if (classes_of(part.c) & kAccent) return;
    lowercase ? append_lower(out, part.c, source) : out.append(part.c, source);
  });
  text = std::move(out);
}

}  // namespace heed::text
