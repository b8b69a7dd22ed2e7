// Unlabelled texts from a table: every row with all its columns.
#pragma once

#include "heed/data/text_parts.h"

namespace heed {

struct TextRows {
  std::shared_ptr<const std::string> file = {};  // file contents, referenced by TableRow::json
  Table table = {};
  int text = kNoColumn, pair = kNoColumn;
  ChosenColumns chosen = {};

  const std::string& cell(const TableRow& row, int column) const { return row.cells[static_cast<size_t>(column)]; }
  // The header, or "column_1", ... without one.
  std::vector<std::string> names() const;
};

// Whether to read a second text: yes: by column names or, with two columns, by order; if_named: only by column names; context: like yes,
// for a question and the text that answers it
enum class PairMode { no, if_named, yes, context };
TextRows read_text_rows(const std::string& where, const TextColumns& columns, PairMode pairs);
TextRows parse_text_rows(const std::string& name, std::string text, TableKind kind, const TextColumns& columns, PairMode pairs);

}  // namespace heed
