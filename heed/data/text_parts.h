// What the readers of texts share among themselves: tables before their columns have a meaning, and characters.
#pragma once

#include "heed/data/text_data.h"

namespace heed {

enum class TableKind { tsv, csv, jsonl };

struct TableRow {
  int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> cells = {};
};

// Rows of cells, without the spaces around them. name: for messages.
struct Table {
  std::string name = {};
  std::vector<std::string> columns = {};  // their names; empty: there is no header
  std::vector<TableRow> rows = {};        // of as many cells as the first, or as there are columns

  std::string at(const TableRow& row) const { return name + ":" + std::to_string(row.line); }
};
Table parse_table(const std::string& name, std::string_view text, TableKind kind);  // the header, if any, is the first row still
Table parse_json_lines(const std::string& name, std::string_view text);             // the keys of the first object are the columns

// The whole way from the text of a file, which must be UTF-8, to what it says.
std::vector<LabelledText> parse_labelled(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns = {});

// Refuses what is not well-formed UTF-8 (RFC 3629), naming the line.
void expect_utf8(const std::string& name, std::string_view text);

std::string_view trimmed(std::string_view text);  // without spaces, tabs and line ends around it
bool is_gap(char letter);                         // one of those

}  // namespace heed
