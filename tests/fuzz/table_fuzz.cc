// Any text as a table of labelled texts (TSV, CSV, JSON lines): refused, or every row has a text and a label.
#include <algorithm>
#include <cstdlib>

#include "heed/data/text_parts.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const TableKind kind : {TableKind::tsv, TableKind::csv, TableKind::jsonl}) {
    try {
      expect_utf8("input", text);
      for (const LabelledText& row : parse_labelled("input", text, kind))
        if (row.text.empty() || row.label.empty() || (row.pair && row.pair->empty())) std::abort();
    } catch (const FileError&) {
    }
  }
  // Splitting into sentences keeps all characters except whitespace.
  const auto letters = [](std::string_view all) {
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](char c) { return !is_whitespace(c); }));
  };
  size_t found = 0;
  for (const std::string& sentence : sentences_of(text)) found += letters(sentence);
  if (found != letters(text)) std::abort();
}
