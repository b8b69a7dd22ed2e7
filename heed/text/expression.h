// Translates the regular expressions of a tokenizer.json for PCRE2. They use Oniguruma's (Ruby's) syntax, as the package `tokenizers`
// does, with the categories of Unicode 16.
#pragma once

#include <string>
#include <string_view>

#include "heed/text/char_set.h"

namespace heed::text {

// `source`: file and key, for error messages.
std::string pcre2_expression(std::string_view expression, const std::string& source);

// The characters of \p{name}: categories, POSIX names, scripts and PCRE2's other properties. `bracketed`: of [[:name:]].
CharSet chars_of_property(std::string_view name, bool bracketed, const std::string& source);

// A bracketed class, from its '[' at text[i]; moves i past its ']'. Nested classes and && are evaluated.
struct BracketClass {
  CharSet chars;         // as written, before negation
  bool negated = false;  // starts with ^
};
BracketClass read_class(std::string_view text, size_t& i, const std::string& source);

// The characters of \p{...}, \P{...} or \p{^...}, from text[i] = 'p' or 'P'; moves i past the }. If no { follows: empty, i unchanged.
CharSet read_property(std::string_view text, size_t& i, const std::string& source);
// The characters of \d, \w, \s, \h, \D, \W, \S, \H; empty for other letters.
CharSet chars_of_escape(char letter);
// The code point of \x41, \x{1F600}, \u0041, from text[i] = 'x' or 'u'; moves i past it.
char32_t read_code_point(std::string_view text, size_t& i, const std::string& source);

}  // namespace heed::text
