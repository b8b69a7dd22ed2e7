// Labelled texts from tables: detects the header and assigns the columns.
#include <algorithm>

#include "heed/data/text_parts.h"
#include "heed/io/paths.h"

namespace heed {
namespace {

constexpr size_t kLongestLabel = 1000;  // bytes; a label is a class name, not a text

// The first row is a header if it has known names for both label and text, or one known name that no other row has in that column.
bool has_header(const Table& table, const TextColumns& columns) {
  if (header_is_certain(table, columns)) return true;
  const ColumnNames names(table.rows.front().cells);
  const int label = names.find_first(kLabelNames), text = std::max(names.find_first(kTextNames), names.find_pair(kPairNames).first);
  if (label != kNoColumn && text != kNoColumn && label != text) return true;
  const int only = std::max(label, text);
  if (only == kNoColumn) return false;
  const auto index = static_cast<size_t>(only);
  return std::none_of(table.rows.begin() + 1, table.rows.end(),
                      [&](const TableRow& row) { return plain_name(row.cells[index]) == names.at(only); });
}

struct Chosen {
  int text = kNoColumn, pair = kNoColumn, label = kNoColumn;
};

class Chooser {
 public:
  Chooser(const Table& table, const TextColumns& settings)
      : table_(table), settings_(settings), count_(static_cast<int>(table.rows.front().cells.size())), names_(table.columns) {}

  Chosen choose() {
    check<FileError>(count_ >= 2, table_.at(table_.rows.front()), ": found 1 column, expected at least a text and a label",
                     "; .tsv has tabs between columns, .csv commas or semicolons");
    chosen_ = {requested_column(table_, "text_column", settings_.text), requested_column(table_, "pair_column", settings_.pair),
               requested_column(table_, "label_column", settings_.label)};
    by_names();
    by_contents();
    check<UsageError>(chosen_.text != chosen_.label && chosen_.text != chosen_.pair && chosen_.label != chosen_.pair, table_.name,
                      ": found the same column twice, expected different ones for text, pair and label");
    return chosen_;
  }

 private:
  // Setting text_column without pair_column means no pair.
  bool wants_pair() const { return settings_.text.empty() && settings_.pair.empty(); }

  void by_names() {
    for (const int column : {chosen_.text, chosen_.pair}) names_.exclude(column);
    if (chosen_.label == kNoColumn) chosen_.label = names_.find_first(kLabelNames);
    names_.exclude(chosen_.label);
    if (chosen_.text != kNoColumn) return;
    const auto [first, second] = names_.find_pair(kPairNames);
    chosen_.text = first != kNoColumn && wants_pair() ? first : names_.find_first(kTextNames);
    if (wants_pair()) chosen_.pair = second;
  }

  void by_contents() {
    if (chosen_.text != kNoColumn && chosen_.label != kNoColumn) return;
    std::vector<ColumnContents> rest;
    for (int c = 0; c < count_; ++c)
      if (c != chosen_.text && c != chosen_.pair && c != chosen_.label) rest.push_back(inspect_column(table_, c));
    if (chosen_.label == kNoColumn) choose_label(rest);
    if (chosen_.text == kNoColumn) choose_texts(rest);
  }

  // The column with the fewest distinct values; a constant column only if there is no other choice.
  void choose_label(std::vector<ColumnContents>& rest) {
    const auto rank = [&](const ColumnContents& column) {
      return std::tuple(column.sentences, rest.size() > 1 && count_ > 2 && column.different == 1, column.different, column.bytes);
    };
    const auto best = std::min_element(rest.begin(), rest.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    constexpr size_t few = 10;
    const size_t rows = table_.rows.size();
    check<FileError>(best != rest.end() && (rows < few || best->different <= rows / 2), table_.name, ": found no column of labels: ",
                     best == rest.end() ? std::string("none is left")
                                        : "column " + std::to_string(best->column + 1) + " has " + std::to_string(best->different) +
                                              " different values in " + std::to_string(rows) + " rows",
                     ", expected labels that repeat; choose it with label_column=NAME");
    check_other_labels(rest);
    chosen_.label = best->column;
    rest.erase(best);
  }

  // Throws if several columns have values that repeat as labels do: a wrong one would be trained on without notice.
  void check_other_labels(const std::vector<ColumnContents>& rest) const {
    constexpr size_t often = 10;  // rows of a value, on average
    std::string found;
    size_t count = 0;
    for (const ColumnContents& each : rest) {
      if (each.sentences || each.different < 2 || each.different > table_.rows.size() / often) continue;
      const auto index = static_cast<size_t>(each.column);
      const std::string name = table_.columns.empty() ? std::to_string(each.column + 1) : in_quotes(table_.columns[index], 40);
      found += (count++ == 0 ? "" : ", ") + name + " (" + std::to_string(each.different) + " values)";
    }
    check<FileError>(count <= 1, table_.name, ": found ", count, " columns that may be the labels: ", found,
                     "; choose one with label_column=NAME");
  }

  void choose_texts(std::vector<ColumnContents> rest) {
    check<FileError>(!rest.empty(), table_.name, ": found no column of texts among ", count_, "; choose it with text_column=NAME");
    if (std::none_of(rest.begin(), rest.end(), [](const auto& column) { return column.sentences; }))
      rest = {*std::max_element(rest.begin(), rest.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; })};
    else
      std::erase_if(rest, [](const auto& column) { return !column.sentences; });
    check<FileError>(rest.size() <= 2, table_.name, ": found ", rest.size(), " columns of sentences, expected one, or two for pairs; ",
                     "choose them with text_column=NAME and pair_column=NAME");
    chosen_.text = rest.front().column;
    if (rest.size() == 2 && wants_pair()) chosen_.pair = rest.back().column;
  }

  const Table& table_;
  const TextColumns& settings_;
  const int count_;
  ColumnNames names_;
  Chosen chosen_;
};

}  // namespace

std::vector<LabelledText> parse_labelled(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns,
                                         ChosenColumns* chosen_columns) {
  Table table = parse_table(name, text, kind);
  check<FileError>(!table.rows.empty(), name, ": found no rows, expected a text and a label in each");
  if (table.columns.empty() && has_header(table, columns)) take_header(table);
  const Chosen chosen = Chooser(table, columns).choose();
  record_column(table, "text_column", chosen.text, chosen_columns);
  record_column(table, "pair_column", chosen.pair, chosen_columns);
  record_column(table, "label_column", chosen.label, chosen_columns);
  const bool has_others = table.rows.front().cells.size() > (chosen.pair == kNoColumn ? 2 : 3);
  const auto cell = [&](TableRow& row, int column, const char* what, const char* setting) -> std::string&& {
    std::string& found = row.cells[static_cast<size_t>(column)];
    check<FileError>(!found.empty(), table.at(row), ": found no ", what, " in column ",
                     table.columns.empty() ? std::to_string(column + 1) : in_quotes(table.columns[static_cast<size_t>(column)], 40),
                     ", expected one in every row; fill it in or delete the row",
                     has_others ? std::string(", or choose another column with ") + setting + "=NAME" : "");
    return std::move(found);
  };
  std::vector<LabelledText> out;
  out.reserve(table.rows.size());
  for (TableRow& row : table.rows) {
    LabelledText& item = out.emplace_back();
    item.text = cell(row, chosen.text, "text", "text_column");
    if (chosen.pair != kNoColumn) item.pair = cell(row, chosen.pair, "second text", "pair_column");
    item.label = cell(row, chosen.label, "label", "label_column");
    check<FileError>(item.label.size() <= kLongestLabel, table.at(row), ": found a label of ", item.label.size(), " bytes, ",
                     in_quotes(item.label, 40), ", expected at most ", kLongestLabel, "; choose the column with label_column=NAME");
  }
  return out;
}

std::vector<LabelledText> read_labelled(const std::string& where, const TextColumns& columns, ChosenColumns* chosen) {
  for (const auto& [name, part, count] : {std::tuple("", DataPart::train, 8000), std::tuple("/validation", DataPart::validation, 1000),
                                          std::tuple("/test", DataPart::test, 1000)}) {
    if (where == std::string("opinions") + name) return synthetic_opinions(count, 1, part);
    if (where == std::string("entailment") + name) return synthetic_entailment(count, 1, part);
  }
  check<FileError>(!is_folder(where), where,
                   ": found a folder without train.tsv, train.csv or train.jsonl (also .gz), expected one of them");
  check<FileError>(is_table_file(where), where, ": found the ending ", in_quotes(Path(where).extension().string(), 20),
                   ", expected .tsv, .csv or .jsonl, each also with .gz; ", "opinions and entailment are built-in synthetic data");
  return parse_labelled(where, read_text_or_gzip(where), table_kind(where), columns, chosen);
}

}  // namespace heed
