// PCRE2's handles, and what its own Unicode tables say. They may be older or newer than ours: Debian 12 has version 14.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <optional>
#include <string>

#include "heed/text/char_set.h"

namespace heed::text {

struct FreePcre2 {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <class T>
using Pcre2 = std::unique_ptr<T, FreePcre2>;

// The characters that PCRE2 finds by \p{name}; none if it does not know the name.
std::optional<CharSet> pcre2_property(const std::string& name);
// A character class of PCRE2, with brackets, for exactly these characters: its own categories as far as they lie within, and ranges for
// the rest. Ranges alone would be right too, but PCRE2 walks through them one by one.
std::string pcre2_class(const CharSet& set);
// The same with ranges alone, to which (?i) applies in full.
std::string pcre2_ranges(const CharSet& set, bool negated);

}  // namespace heed::text
