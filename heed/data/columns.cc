// Assigns the columns of a table: by explicit settings, by the names in the header, by the contents.
#include <algorithm>
#include <cctype>
#include <set>

#include "heed/core/nearest.h"
#include "heed/data/text_parts.h"

namespace heed {
namespace {

bool is_numeric(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.,+-eE") == std::string::npos &&
         cell.find_first_of("0123456789") != std::string::npos;
}

std::string ending_of(const std::string& where) {
  const std::string name = plain_name(where);
  return Path(name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name).extension().string();
}

const Names kEndings = {".tsv", ".csv", ".jsonl"};

}  // namespace

const Names kLabelNames = {"label",        "labels",  "gold_label",  "sentiment", "class",  "category", "polarity",
                           "is_duplicate", "quality", "target",      "stars",     "rating", "intent",   "emotion",
                           "topic",        "score",   "star_rating", "overall",   "tag",    "verdict",  "y"};
const Names kTextNames = {"text",      "sentence",    "content",     "review",   "comment",   "body",    "tweet",    "phrase",
                          "document",  "review_text", "review_body", "message",  "sentence1", "premise", "question", "description",
                          "utterance", "query",       "headline",    "abstract", "input",     "title"};
const Names kQuestionNames = {"question", "query"}, kContextNames = {"context", "passage", "paragraph", "document", "text"};
const NamePairs kPairNames = {{"sentence1", "sentence2"}, {"premise", "hypothesis"}, {"question1", "question2"}, {"question", "answer"},
                              {"question", "sentence"},   {"question", "passage"},   {"question", "context"},    {"text", "text_pair"},
                              {"text", "pair"},           {"text1", "text2"},        {"sentence", "pair"},       {"text_a", "text_b"},
                              {"#1_string", "#2_string"}};

std::string plain_name(std::string name) {
  for (char& letter : name)
    letter = letter == ' ' || letter == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

bool is_column_number(const std::string& word) {
  return !word.empty() && word.size() < 6 && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

ColumnNames::ColumnNames(const Names& names) {
  for (const std::string& name : names) names_.push_back(plain_name(name));
}

int ColumnNames::find(const std::string& name) const {
  if (name.empty()) return kNoColumn;
  const std::string plain = plain_name(name), inner = "." + plain;
  auto found = std::find(names_.begin(), names_.end(), plain);
  if (found == names_.end())
    found = std::find_if(names_.begin(), names_.end(), [&](const std::string& each) { return each.ends_with(inner); });
  return found == names_.end() ? kNoColumn : static_cast<int>(found - names_.begin());
}

int ColumnNames::find_first(const Names& known) const {
  for (const std::string& name : known)
    if (const int column = find(name); column != kNoColumn) return column;
  return kNoColumn;
}

std::pair<int, int> ColumnNames::find_pair(const NamePairs& known) const {
  for (const auto& [first, second] : known)
    if (const int a = find(first), b = find(second); a != kNoColumn && b != kNoColumn && a != b) return {a, b};
  return {kNoColumn, kNoColumn};
}

void ColumnNames::exclude(int column) {
  if (column != kNoColumn && column < count()) names_[static_cast<size_t>(column)].clear();
}

int requested_column(const Table& table, const char* setting, const std::string& word) {
  if (word.empty()) return kNoColumn;
  const auto exact = std::find(table.columns.begin(), table.columns.end(), word);
  if (exact != table.columns.end()) return static_cast<int>(exact - table.columns.begin());
  if (const int column = ColumnNames(table.columns).find(word); column != kNoColumn) return column;
  const int count = static_cast<int>(table.rows.front().cells.size());
  if (is_column_number(word) && std::stoi(word) >= 1 && std::stoi(word) <= count) return std::stoi(word) - 1;
  std::string known;
  for (const std::string& name : table.columns) known += (known.empty() ? "" : ", ") + in_quotes(name, 40);
  fail<UsageError>(table.name, ": found no column ", in_quotes(word, 40), " (", setting, "), expected ", known,
                   known.empty() ? "a number from 1 to " : " or a number from 1 to ", count, did_you_mean(word, table.columns));
}

bool header_is_certain(const Table& table, const TextColumns& columns) {
  for (const auto& [setting, word] : column_settings())
    if (!(columns.*word).empty() && !is_column_number(columns.*word)) return true;
  constexpr size_t few = 4;  // too few rows to decide
  if (table.rows.size() < few) return false;
  for (size_t c = 0; c < table.rows.front().cells.size(); ++c) {
    const std::string& first = table.rows.front().cells[c];
    if (first.empty() || is_numeric(first)) continue;
    if (std::all_of(table.rows.begin() + 1, table.rows.end(), [&](const TableRow& row) { return is_numeric(row.cells[c]); })) return true;
  }
  return false;
}

void take_header(Table& table) {
  table.columns = std::move(table.rows.front().cells);
  table.rows.erase(table.rows.begin());
  check<FileError>(!table.rows.empty(), table.name, ": found a header and no rows, expected at least one row after it");
}

void record_column(const Table& table, const char* setting, int column, ChosenColumns* chosen) {
  if (chosen == nullptr || column == kNoColumn) return;
  chosen->push_back({setting, table.columns.empty() ? "" : table.columns[static_cast<size_t>(column)], column + 1});
}

ColumnContents inspect_column(const Table& table, int column) {
  ColumnContents out{column};
  std::set<std::string_view> values;
  size_t spaced = 0;
  for (const TableRow& row : table.rows) {
    const std::string& cell = row.cells[static_cast<size_t>(column)];
    values.insert(cell);
    spaced += cell.find(' ') != std::string::npos;
    out.bytes += cell.size();
  }
  out.sentences = 2 * spaced >= table.rows.size();
  out.different = values.size();
  return out;
}

const std::vector<ColumnSetting>& column_settings() {
  static const std::vector<ColumnSetting> settings = {{"text_column", &TextColumns::text},
                                                      {"pair_column", &TextColumns::pair},
                                                      {"label_column", &TextColumns::label},
                                                      {"source_column", &TextColumns::source},
                                                      {"target_column", &TextColumns::target}};
  return settings;
}

std::string columns_text(const std::string& file, const ChosenColumns& chosen) {
  std::string out;
  for (const ChosenColumn& each : chosen) out += (out.empty() ? "" : ", ") + each.setting + "=" + each.word();
  for (char& letter : out)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';  // no terminal control characters
  return "columns of " + file + ": " + out;
}

bool is_table_file(const std::string& where) { return std::find(kEndings.begin(), kEndings.end(), ending_of(where)) != kEndings.end(); }

TableKind table_kind(const std::string& where) {
  const std::string ending = ending_of(where);
  check<FileError>(is_table_file(where), where, ": found the ending ", in_quotes(ending, 20),
                   ", expected .tsv, .csv or .jsonl, each also with .gz");
  return ending == ".tsv" ? TableKind::tsv : ending == ".csv" ? TableKind::csv : TableKind::jsonl;
}

std::string train_table_of(const std::string& where) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(where, ignored)) return where;
  for (const std::string& ending : kEndings)
    for (const char* packing : {"", ".gz"})
      if (const Path file = Path(where) / ("train" + ending + packing); std::filesystem::exists(file, ignored)) return file.string();
  return where;
}

std::string sibling_table(const std::string& train, const std::vector<std::string>& part_names) {
  const std::string name = Path(train).filename().string();
  if (!name.starts_with("train.") || !is_table_file(train)) return {};
  const bool packed = name.ends_with(".gz");
  const std::string ending = name.substr(5, name.size() - 5 - (packed ? 3 : 0));
  for (const std::string& word : part_names)
    for (const char* packing : {packed ? ".gz" : "", packed ? "" : ".gz"})  // as the training data first
      if (const Path path = Path(train).parent_path() / (word + ending + packing); std::filesystem::exists(path)) return path.string();
  return {};
}

}  // namespace heed
