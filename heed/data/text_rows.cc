#include "heed/data/text_rows.h"

#include <algorithm>

namespace heed {
namespace {

// The first row is a header if it has a known column name that no other row has in that column.
bool has_header_of_texts(const Table& table, const TextColumns& columns) {
  if (header_is_certain(table, columns)) return true;
  const ColumnNames names(table.rows.front().cells);
  for (const int column : {names.find_first(kTextNames), names.find_pair(kPairNames).first, names.find_first(kLabelNames)}) {
    if (column == kNoColumn) continue;
    const auto same = [&](const TableRow& row) { return plain_name(row.cells[static_cast<size_t>(column)]) == names.at(column); };
    if (std::none_of(table.rows.begin() + 1, table.rows.end(), same)) return true;
  }
  return false;
}

void choose_by_names(TextRows& rows, ColumnNames names, PairMode pairs) {
  names.exclude(rows.pair);
  if (rows.text != kNoColumn) return;
  const auto [first, second] = pairs == PairMode::context ? std::pair(names.find_first(kQuestionNames), names.find_first(kContextNames))
                                                          : names.find_pair(kPairNames);
  if (first != kNoColumn && second != kNoColumn && pairs != PairMode::no && rows.pair == kNoColumn) {
    rows.text = first;
    rows.pair = second;
  } else {
    rows.text = names.find_first(kTextNames);
    if (rows.text == kNoColumn) rows.text = names.find_first({"source", "src", "prompt"});
  }
}

void choose_by_contents(TextRows& rows, const ColumnNames& names, bool needs_pair) {
  const int count = static_cast<int>(rows.table.rows.front().cells.size());
  std::vector<int> rest;
  for (int c = 0; c < count; ++c)
    if (c != rows.text && c != rows.pair) rest.push_back(c);
  if (needs_pair && rest.size() == 2 && rows.text == kNoColumn && rows.pair == kNoColumn) {
    rows.text = rest[0];
    rows.pair = rest[1];
  }
  if (rows.text == kNoColumn && rest.size() == 1) rows.text = rest[0];
  if (rows.text != kNoColumn) return;
  const int label = names.find_first(kLabelNames);
  std::erase_if(rest, [&](int c) { return c == label || !inspect_column(rows.table, c).sentences; });
  std::string known;
  for (const std::string& name : rows.table.columns) known += (known.empty() ? ": " : ", ") + in_quotes(name, 40);
  check<UsageError>(rest.size() == 1, rows.table.name, ": found ", rest.empty() ? std::string("no") : std::to_string(rest.size()),
                    " columns of sentences among ", count, known, "; expected one: choose it with text_column=NAME (or a number from 1)");
  rows.text = rest.front();
}

}  // namespace

std::vector<std::string> TextRows::names() const {
  if (!table.columns.empty()) return table.columns;
  std::vector<std::string> out;
  for (size_t c = 0; c < table.rows.front().cells.size(); ++c) out.push_back("column_" + std::to_string(c + 1));
  return out;
}

TextRows parse_text_rows(const std::string& name, std::string text, TableKind kind, const TextColumns& columns, PairMode pairs) {
  TextRows rows{.file = std::make_shared<const std::string>(std::move(text))};
  rows.table = parse_table(name, *rows.file, kind);
  check<FileError>(!rows.table.rows.empty(), name, ": found no rows, expected a text in each");
  if (rows.table.columns.empty() && has_header_of_texts(rows.table, columns)) take_header(rows.table);
  rows.text = requested_column(rows.table, "text_column", columns.text);
  if (rows.text == kNoColumn) rows.text = requested_column(rows.table, "source_column", columns.source);
  rows.pair = requested_column(rows.table, "pair_column", columns.pair);
  const int label = requested_column(rows.table, "label_column", columns.label);
  ColumnNames names(rows.table.columns);
  names.exclude(label);
  choose_by_names(rows, names, pairs);
  const bool needs_pair = pairs == PairMode::yes || pairs == PairMode::context || rows.pair != kNoColumn;
  choose_by_contents(rows, names, needs_pair);
  check<UsageError>(!needs_pair || rows.pair != kNoColumn, name, ": found no column for the second text, expected one; ",
                    "choose it with pair_column=NAME (or a number from 1)");
  check<UsageError>(rows.text != rows.pair && rows.text != label && (rows.pair == kNoColumn || rows.pair != label), name,
                    ": found the same column twice, expected different ones");
  record_column(rows.table, columns.text.empty() && !columns.source.empty() ? "source_column" : "text_column", rows.text, &rows.chosen);
  record_column(rows.table, "pair_column", rows.pair, &rows.chosen);
  return rows;
}

TextRows read_text_rows(const std::string& where, const TextColumns& columns, PairMode pairs) {
  return parse_text_rows(where, read_text_or_gzip(where), table_kind(where), columns, pairs);
}

}  // namespace heed
