// What the readers of texts share among themselves: tables before their columns have a meaning, and characters.
#pragma once

#include "heed/data/text_data.h"

namespace heed {

enum class TableKind { tsv, csv, jsonl };

struct TableRow {
  int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> cells = {};
  std::string_view json = {};  // of .jsonl: the line, in the text that was parsed
};

// Rows of cells, without the spaces around them. name: for messages.
struct Table {
  std::string name = {};
  std::vector<std::string> columns = {};  // their names; empty: there is no header
  std::vector<TableRow> rows = {};        // of as many cells as the first, or as there are columns

  std::string at(const TableRow& row) const { return name + ":" + std::to_string(row.line); }
};
Table parse_table(const std::string& name, std::string_view text, TableKind kind);  // the header, if any, is the first row still
// The keys of the first object are the columns, those of an object in it "key.key".
Table parse_json_lines(const std::string& name, std::string_view text);
TableKind table_kind(const std::string& where);  // by its ending; a FileError for others

// The whole way from the text of a file, which must be UTF-8, to what it says.
std::vector<LabelledText> parse_labelled(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns = {},
                                         ChosenColumns* chosen = nullptr);
std::vector<Translation> parse_translations(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns = {},
                                            const LanguageCodes& languages = {}, ChosenColumns* chosen = nullptr);
// Whether a table holds sentences in two languages rather than labelled texts, as far as names and contents tell.
bool looks_translated(const Table& table, const TextColumns& columns, const LanguageCodes& languages);

// --- columns -------------------------------------------------------------------------------------------------------- columns.cc

constexpr int kNoColumn = -1;
using Names = std::vector<std::string>;
using NamePairs = std::vector<std::pair<std::string, std::string>>;
extern const Names kLabelNames, kTextNames;  // as public data sets call them, most telling first
extern const NamePairs kPairNames;

std::string plain_name(std::string name);  // in lower case, with _ for spaces and hyphens
bool is_column_number(const std::string& word);

// The names of a table's columns, or the cells of its first row as if they were.
class ColumnNames {
 public:
  explicit ColumnNames(const Names& names);
  int find(const std::string& name) const;  // "en" also finds "translation.en"
  int find_first(const Names& known) const;
  std::pair<int, int> find_pair(const NamePairs& known) const;  // both or none
  void take(int column);                                        // it has a meaning and is not found any more
  const std::string& at(int column) const { return names_[static_cast<size_t>(column)]; }
  int count() const { return static_cast<int>(names_.size()); }

 private:
  Names names_;
};

// The column that a person named for a setting; none: the word is empty. A UsageError that lists the columns where none fits.
int said_column(const Table& table, const char* setting, const std::string& word);
// Where a person named a column, or one column has a word above numbers, the first row is a header whatever the words are.
bool surely_has_header(const Table& table, const TextColumns& columns);
void take_header(Table& table);  // the first row becomes the names
void note_column(const Table& table, const char* setting, int column, ChosenColumns* chosen);

struct ColumnContents {
  int column = 0;
  bool sentences = false;  // at least half of the cells have a space
  size_t different = 0;    // values
  size_t bytes = 0;
};
ColumnContents look_at_column(const Table& table, int column);

// Refuses what is not well-formed UTF-8 (RFC 3629), naming the line.
void expect_utf8(const std::string& name, std::string_view text);

std::string_view trimmed(std::string_view text);  // without spaces, tabs and line ends around it
bool is_gap(char letter);                         // one of those

}  // namespace heed
