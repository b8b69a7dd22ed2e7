// Splits a template into text and the tokens of its tags.
#pragma once

#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed::serve {

struct JinjaToken {
  enum class Kind { text, open_output, close_output, open_tag, close_tag, name, string, number, symbol, end };
  Kind kind;
  std::string text = {};
  Json value = {};  // of numbers
  int64_t line = 0;
};

// Whitespace next to {%- and -%} and the newline after a tag are left out, as in the settings of `transformers`.
std::vector<JinjaToken> jinja_tokens(const std::string& text, const std::string& source);

}  // namespace heed::serve
