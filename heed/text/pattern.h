// The patterns of a tokenizer.json: a literal string or a regular expression. The expressions of well-known models have hand-written
// scanners, many times as fast as a general engine; others use PCRE2.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "heed/io/json_reader.h"
#include "heed/text/aligned.h"

namespace heed::text {

// Appends all matches from left to right, non-empty and non-overlapping. Positions are relative to `text`.
using Finder = std::function<void(std::string_view text, std::vector<Span>& matches)>;

Finder find_literal(std::string literal);
Finder find_regex(const std::string& expression, const std::string& source);
Finder find_pattern(const JsonReader& json);  // {"String": ...} or {"Regex": ...}

// The expressions of GPT-2, and of cl100k and its relatives (Llama 3, Qwen 2 and others).
void scan_gpt2(std::string_view text, std::vector<Span>& matches);
void scan_cl100k(std::string_view text, int max_digits, std::vector<Span>& matches);

}  // namespace heed::text
