// PCRE2 handles, and character sets from its Unicode tables, whose version may differ from ours: Debian 12 has version 14.
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

// The characters PCRE2 matches with \p{name}; nullopt if it does not know the name.
std::optional<CharSet> pcre2_property(const std::string& name);
// A bracketed PCRE2 class for exactly these characters: PCRE2's categories where they are subsets, ranges for the rest. Ranges alone
// are correct too, but PCRE2 scans them linearly.
std::string pcre2_class(const CharSet& set);
// The same with ranges only; (?i) fully applies to these.
std::string pcre2_ranges(const CharSet& set, bool negated);

}  // namespace heed::text
