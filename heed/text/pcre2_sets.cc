#include <array>
#include <cstring>

#include "heed/text/pcre2.h"
#include "heed/text/unicode.h"

namespace heed::text {
namespace {

// All characters in ascending order, as UTF-8.
const std::string& every_char() {
  static const std::string all = [] {
    std::string out;
    for (char32_t c = 0; c < 0x110000; ++c)
      if (c < 0xD800 || c > 0xDFFF) append_utf8(out, c);
    return out;
  }();
  return all;
}

// body(first, last, mark) for every run of characters that matches; mark: name of the last (*:name) passed, or null. Returns false if
// PCRE2 cannot compile the expression.
template <class Body>
bool each_run(const std::string& expression, const Body& body) {
  int error = 0;
  PCRE2_SIZE at = 0;
  const Pcre2<pcre2_code> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
  if (!code) return false;
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  const Pcre2<pcre2_match_data> data(pcre2_match_data_create(1, nullptr));
  const std::string& text = every_char();
  for (size_t i = 0; i < text.size();) {
    if (pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), i, PCRE2_NO_UTF_CHECK, data.get(), nullptr) < 0)
      break;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    i = ends[1];
    body(char_at(text, ends[0]), char_at(text, char_before(text, i)), reinterpret_cast<const char*>(pcre2_get_mark(data.get())));
  }
  return true;
}

// PCRE2's characters for each of kCategoryNames.
const std::array<CharSet, std::size(kCategoryNames)>& pcre2_categories() {
  static const auto categories = [] {
    std::string expression;
    for (const std::string_view name : kCategoryNames)
      expression.append(expression.empty() ? "" : "|").append("\\p{").append(name).append("}+(*:").append(name).append(")");
    std::array<CharSet, std::size(kCategoryNames)> out;
    each_run(expression, [&](char32_t first, char32_t last, const char* mark) {
      for (size_t i = 0; i < out.size(); ++i)
        if (kCategoryNames[i] == mark) out[i].push_back({first, last});
    });
    for (CharSet& set : out) set = char_set(std::move(set));
    return out;
  }();
  return categories;
}

void append_hex(std::string& out, char32_t c) {
  char text[16];
  std::snprintf(text, sizeof text, "\\x{%X}", static_cast<unsigned>(c));
  out += text;
}

// The contents of a class. PCRE2 rejects surrogates as ends of a range; UTF-8 has none either.
std::string class_contents(const CharSet& set) {
  std::string out;
  for (auto [first, last] : set) {
    if (first >= 0xD800 && first <= 0xDFFF) first = 0xE000;
    if (last >= 0xD800 && last <= 0xDFFF) last = 0xD7FF;
    if (first > last) continue;
    append_hex(out, first);
    if (last > first) append_hex(out += '-', last);
  }
  return out;
}

// PCRE2's categories that are subsets, then the remaining ranges.
std::string with_categories(const CharSet& set) {
  std::string names;
  CharSet missing = set;
  const CharSet others = complement(set);
  for (size_t i = 0; i < std::size(kCategoryNames); ++i) {
    const CharSet& chars = pcre2_categories()[i];
    if (chars.size() < 4 || !intersection_of(chars, others).empty()) continue;
    names.append("\\p{").append(kCategoryNames[i]).append("}");
    missing = intersection_of(missing, complement(chars));
  }
  return names + class_contents(missing);
}

std::string in_brackets(const std::string& text, bool negated) {
  if (text.empty()) return negated ? "[\\x{0}-\\x{10FFFF}]" : "(?!)";
  return (negated ? "[^" : "[") + text + "]";
}

}  // namespace

std::optional<CharSet> pcre2_property(const std::string& name) {
  CharSet out;
  const bool known =
      name.find_first_of("{}") == name.npos && each_run("\\p{" + name + "}+", [&](char32_t first, char32_t last, const char*) {
        out.push_back({first, last});
      });
  return known ? std::optional(char_set(std::move(out))) : std::nullopt;
}

std::string pcre2_ranges(const CharSet& set, bool negated) { return in_brackets(class_contents(set), negated); }

std::string pcre2_class(const CharSet& set) {
  const CharSet others = complement(set);
  const std::string direct = set.size() < 16 ? class_contents(set) : with_categories(set);
  const std::string inverted = others.size() < 16 ? class_contents(others) : with_categories(others);
  return direct.size() <= inverted.size() ? in_brackets(direct, false) : in_brackets(inverted, true);
}

}  // namespace heed::text
