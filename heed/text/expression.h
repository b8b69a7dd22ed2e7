// The expressions of a tokenizer.json are in the syntax of Oniguruma (Ruby's), which the package `tokenizers` uses, with the categories of
// Unicode 16. Here they become expressions that find the same in PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "heed/text/char_set.h"

namespace heed::text {

// `source`: the file and key, for complaints.
std::string pcre2_expression(std::string_view expression, const std::string& source);

// The characters of \p{name}: categories, POSIX names, scripts and whatever else PCRE2 knows. `bracketed`: of [[:name:]].
CharSet chars_named(std::string_view name, bool bracketed, const std::string& source);

// A class in brackets, from its '[' at text[i] on; moves i behind its ']'. Classes inside it and && are evaluated here.
struct BracketClass {
  CharSet chars;         // as written, without the ^ at its begin
  bool negated = false;  // it has that ^
};
BracketClass read_class(std::string_view text, size_t& i, const std::string& source);

// The characters of \p{...}, \P{...} or \p{^...}, from text[i] = 'p' or 'P' on; moves i behind the }. Empty, with i where it was, if no {
// follows.
CharSet read_property(std::string_view text, size_t& i, const std::string& source);
// The characters of \d, \w, \s, \h and of \D, \W, \S, \H; empty for another letter.
CharSet chars_of_escape(char letter);
// The number in \x41, \x{1F600}, \u0041 from text[i] = 'x' or 'u' on; moves i behind it.
char32_t read_code_point(std::string_view text, size_t& i, const std::string& source);

}  // namespace heed::text
