// Texts to be read from a table without labels: every row, with the columns that are not read beside it.
#pragma once

#include "heed/data/text_parts.h"

namespace heed {

struct TextRows {
  std::shared_ptr<const std::string> file = {};  // its text, which the lines of .jsonl lie in
  Table table = {};
  int text = kNoColumn, pair = kNoColumn;
  ChosenColumns chosen = {};

  const std::string& cell(const TableRow& row, int column) const { return row.cells[static_cast<size_t>(column)]; }
  // With a header or without: "column_1", ...
  std::vector<std::string> names() const;
};

// pairs: whether a second text is wanted, by names or, of two columns, by their order; if_named: only where their names say so
enum class PairsWanted { no, if_named, yes };
TextRows read_text_rows(const std::string& where, const TextColumns& columns, PairsWanted pairs);
TextRows parse_text_rows(const std::string& name, std::string text, TableKind kind, const TextColumns& columns, PairsWanted pairs);

}  // namespace heed
