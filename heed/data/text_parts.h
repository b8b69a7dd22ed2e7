// Shared by the text readers: tables before their columns are assigned, and character helpers.
#pragma once

#include "heed/data/text_data.h"

namespace heed {

enum class TableKind { tsv, csv, jsonl };

struct TableRow {
  int64_t line = 0;  // first line, from 1
  std::vector<std::string> cells = {};
  std::string_view json = {};  // .jsonl: the line, a view into the parsed text
};

// Rows of trimmed cells. name: for error messages.
struct Table {
  std::string name = {};
  std::vector<std::string> columns = {};  // names; empty: no header
  std::vector<TableRow> rows = {};        // all with the same number of cells

  std::string at(const TableRow& row) const { return name + ":" + std::to_string(row.line); }
};
// A header, if any, is still the first row. trims: false keeps the spaces around cells of .csv and .tsv
Table parse_table(const std::string& name, std::string_view text, TableKind kind, bool trims = true);
// The keys of the first object are the columns, keys of nested objects "key.key".
Table parse_json_lines(const std::string& name, std::string_view text);
TableKind table_kind(const std::string& where);  // by extension; a FileError for others

// Parse the UTF-8 text of a file.
std::vector<LabelledText> parse_labelled(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns = {},
                                         ChosenColumns* chosen = nullptr);
std::vector<Translation> parse_translations(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns = {},
                                            const LanguageCodes& languages = {}, ChosenColumns* chosen = nullptr);
// Whether names and contents suggest translations rather than labelled texts.
bool looks_translated(const Table& table, const TextColumns& columns, const LanguageCodes& languages);

// --- columns -------------------------------------------------------------------------------------------------------- columns.cc

constexpr int kNoColumn = -1;
using Names = std::vector<std::string>;
using NamePairs = std::vector<std::pair<std::string, std::string>>;
extern const Names kLabelNames, kTextNames, kQuestionNames, kContextNames;  // names used by public data sets, most specific first
extern const NamePairs kPairNames;

std::string plain_name(std::string name);  // lowercase, with _ for spaces and hyphens
bool is_column_number(const std::string& word);

// Column names, or the cells of the first row treated as such.
class ColumnNames {
 public:
  explicit ColumnNames(const Names& names);
  int find(const std::string& name) const;  // "en" also finds "translation.en"
  int find_first(const Names& known) const;
  std::pair<int, int> find_pair(const NamePairs& known) const;  // both or none
  void exclude(int column);                                     // already assigned: find no longer returns it
  const std::string& at(int column) const { return names_[static_cast<size_t>(column)]; }
  int count() const { return static_cast<int>(names_.size()); }

 private:
  Names names_;
};

// The column that a setting names; kNoColumn if it is empty. An unknown column is a UsageError that lists the columns.
int requested_column(const Table& table, const char* setting, const std::string& word);
// Whether the first row must be a header: a setting names a column, or a column has text above numbers only.
bool header_is_certain(const Table& table, const TextColumns& columns);
void take_header(Table& table);  // turns the first row into column names
void record_column(const Table& table, const char* setting, int column, ChosenColumns* chosen);

struct ColumnContents {
  int column = 0;
  bool sentences = false;  // at least half of the cells have a space
  size_t different = 0;    // distinct values
  size_t bytes = 0;
};
ColumnContents inspect_column(const Table& table, int column);

// Fails with the line number if the text is not well-formed UTF-8 (RFC 3629).
void expect_utf8(const std::string& name, std::string_view text);

std::string_view trimmed(std::string_view text);  // without surrounding whitespace
bool is_whitespace(char letter);                  // space, tab, \n, \r

}  // namespace heed
