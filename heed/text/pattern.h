// What to look for in a text: a literal string or a regular expression, as a tokenizer.json gives it. The expressions of well-known
// models have scanners of their own, many times as fast as a general engine; others go to PCRE2.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "heed/text/aligned.h"
#include "heed/text/json_part.h"

namespace heed::text {

// Appends every match, from left to right; matches are not empty and do not overlap. Positions count from the begin of `text`.
using Finder = std::function<void(std::string_view text, std::vector<Span>& matches)>;

Finder find_literal(std::string literal);
Finder find_regex(const std::string& expression, const std::string& source);
Finder find_pattern(const JsonPart& json);  // {"String": ...} or {"Regex": ...}

// The expressions of GPT-2, and of the models that follow cl100k (Llama 3, Qwen 2 and others).
void scan_gpt2(std::string_view text, std::vector<Span>& matches);
void scan_cl100k(std::string_view text, int longest_number, std::vector<Span>& matches);  // in digits

}  // namespace heed::text
