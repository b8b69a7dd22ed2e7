#include <map>
#include <mutex>

#include "heed/core/check.h"
#include "heed/text/expression.h"
#include "heed/text/pcre2.h"
#include "heed/text/unicode.h"
#include "heed/text/unicode_later.h"

namespace heed::text {
namespace {

// Long names of categories and of their groups, without case, spaces and underscores.
constexpr std::pair<const char*, const char*> kLongNames[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"surrogate", "Cs"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
    {"punct", "P"},
    {"digit", "Nd"},
    {"cntrl", "Cc"},
};

std::string loose(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

std::string category_name(const std::string& name) {
  for (const auto& [known, category] : kLongNames)
    if (name == known) return category;
  for (const std::string_view category : kCategoryNames)
    if (name == loose(category) || name == loose(category.substr(0, 1))) return std::string(category.substr(0, name.size()));
  return "";
}

const CharSet kSpaces = {{9, 13},          {' ', ' '},       {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                         {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

// \w as Oniguruma defines it.
CharSet word_chars() {
  CharSet out =
      char_set({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}});
  for (const char* category : {"L", "M", "Nd", "Nl", "Pc"}) out = union_of(std::move(out), chars_in(category));
  return out;
}

// Properties other than general categories: PCRE2's set plus later characters that match by script or category.
CharSet other_chars(const std::string& name, const std::string& pcre2_name, const std::string& source) {
  constexpr std::pair<const char*, const char*> by_category[] = {{"alphabetic", "L"}, {"lowercase", "Ll"}, {"uppercase", "Lu"}};
  std::optional<CharSet> known = pcre2_property("sc:" + pcre2_name);  // script; without "sc:" PCRE2 adds the script extensions
  if (!known) known = pcre2_property(pcre2_name);
  std::vector<Range> later;
  for (const LaterChars& each : kLaterChars) {
    bool matches = loose(each.script) == name;
    for (const auto& [property, category] : by_category)
      matches = matches || (name == property && std::string_view(each.category).starts_with(category));
    if (matches) later.push_back({each.first, each.last});
  }
  check<FileError>(known || !later.empty(), source, ": found \\p{", pcre2_name,
                   "}, expected a category or script of Unicode that PCRE2 has");
  return union_of(char_set(std::move(later)), known.value_or(CharSet{}));
}

CharSet find_chars_of_property(const std::string& name, std::string_view written, bool bracketed, const std::string& source) {
  const auto all_of = [](std::initializer_list<const char*> categories) {
    CharSet out;
    for (const char* category : categories) out = union_of(std::move(out), chars_in(category));
    return out;
  };
  if (bracketed && name == "punct") return all_of({"P", "S"});
  if (name == "any") return complement({});
  if (name == "assigned") return complement(chars_in("Cn"));
  if (name == "ascii") return {{0, 127}};
  if (name == "space" || name == "whitespace") return kSpaces;
  if (name == "word") return word_chars();
  if (name == "xdigit") return {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  if (name == "blank") return union_of({{9, 9}}, chars_in("Zs"));
  if (name == "lc" || name == "casedletter") return all_of({"Lu", "Ll", "Lt"});
  if (name == "graph") return complement(union_of(kSpaces, all_of({"Cc", "Cn", "Cs"})));
  if (name == "print") return complement(union_of({{0x2028, 0x2029}}, all_of({"Cc", "Cn", "Cs"})));
  if (name == "alpha") return other_chars("alphabetic", "Alphabetic", source);
  if (name == "lower") return other_chars("lowercase", "Lowercase", source);
  if (name == "upper") return other_chars("uppercase", "Uppercase", source);
  if (name == "alnum") return union_of(other_chars("alphabetic", "Alphabetic", source), chars_in("Nd"));
  if (const std::string category = category_name(name); !category.empty()) return chars_in(category);
  return other_chars(name, std::string(written), source);
}

}  // namespace

CharSet chars_of_property(std::string_view name, bool bracketed, const std::string& source) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, bool>, CharSet> cache;
  const std::lock_guard lock(mutex);
  const std::string key = loose(name);
  const auto found = cache.find({key, bracketed});
  if (found != cache.end()) return found->second;
  return cache[{key, bracketed}] = find_chars_of_property(key, name, bracketed, source);
}

CharSet chars_of_escape(char letter) {
  const char lower = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  const char* name = lower == 'd' ? "digit" : lower == 'w' ? "word" : lower == 's' ? "space" : lower == 'h' ? "xdigit" : nullptr;
  if (!name) return {};
  CharSet out = chars_of_property(name, false, "");
  return letter == lower ? out : complement(out);
}

}  // namespace heed::text
