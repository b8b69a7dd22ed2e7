// Labelled texts out of tables: is the first row a header, and which column is which?
#include <algorithm>
#include <cctype>
#include <set>

#include "heed/core/nearest.h"
#include "heed/data/text_parts.h"

namespace heed {
namespace {

using Words = std::vector<std::string>;

// As public sets call them, most telling first.
const Words kLabels = {"label",    "labels",       "gold_label", "sentiment", "class", "category",
                       "polarity", "is_duplicate", "quality",    "target",    "stars", "rating"};
const Words kTexts = {"text",  "sentence", "content",  "review",    "comment", "body",
                      "tweet", "phrase",   "document", "sentence1", "premise", "question"};
const std::vector<std::pair<std::string, std::string>> kPairs = {
    {"sentence1", "sentence2"}, {"premise", "hypothesis"}, {"question1", "question2"}, {"question", "answer"},
    {"question", "sentence"},   {"question", "passage"},   {"text", "text_pair"},      {"text", "pair"},
    {"text1", "text2"},         {"sentence", "pair"},      {"text_a", "text_b"},       {"#1 string", "#2 string"}};

constexpr int kNone = -1;

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

int place_of(const Words& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? kNone : static_cast<int>(found - names.begin());
}

int first_known(const Words& names, const Words& known) {
  for (const std::string& name : known)
    if (const int place = place_of(names, name); place != kNone) return place;
  return kNone;
}

std::pair<int, int> known_pair(const Words& names) {
  for (const auto& [first, second] : kPairs)
    if (place_of(names, first) != kNone && place_of(names, second) != kNone) return {place_of(names, first), place_of(names, second)};
  return {kNone, kNone};
}

bool is_number(const std::string& word) {
  return !word.empty() && word.size() < 6 && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A first row is a header where somebody gave a column's name, or where one cell is a name that labels or texts go by and another
// is one too, or no row below says the same in its column.
bool has_header(const Table& table, const TextColumns& columns) {
  for (const std::string& word : {columns.text, columns.pair, columns.label})
    if (!word.empty() && !is_number(word)) return true;
  Words names;
  for (const std::string& cell : table.rows.front().cells) names.push_back(lower(cell));
  const int label = first_known(names, kLabels), text = std::max(first_known(names, kTexts), known_pair(names).first);
  if (label != kNone && text != kNone) return true;
  const int only = std::max(label, text);
  if (only == kNone) return false;
  const auto place = static_cast<size_t>(only);
  return std::none_of(table.rows.begin() + 1, table.rows.end(),
                      [&](const TableRow& row) { return lower(row.cells[place]) == names[place]; });
}

// What a column holds, as far as it tells labels from texts.
struct Holds {
  int column = 0;
  bool sentences = false;  // most cells have a space
  size_t different = 0;    // values
  size_t bytes = 0;
};

Holds look_at(const Table& table, int column) {
  Holds out{column};
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

struct Chosen {
  int text = kNone, pair = kNone, label = kNone;
};

class Chooser {
 public:
  Chooser(const Table& table, const TextColumns& words)
      : table_(table), words_(words), count_(static_cast<int>(table.rows.front().cells.size())) {
    for (const std::string& name : table.columns) names_.push_back(lower(name));
  }

  Chosen choose() {
    check<FileError>(count_ >= 2, table_.at(table_.rows.front()), ": found 1 column, expected at least a text and a label",
                     "; .tsv has tabs between columns, .csv commas or semicolons");
    by_words();
    by_names();
    by_contents();
    check<UsageError>(chosen_.text != chosen_.label && chosen_.text != chosen_.pair && chosen_.label != chosen_.pair, table_.name,
                      ": found the same column twice, expected different ones for text, pair and label");
    return chosen_;
  }

 private:
  int column(const std::string& word) const {
    if (word.empty()) return kNone;
    int place = place_of(table_.columns, word);
    if (place == kNone) place = place_of(names_, lower(word));
    if (place == kNone && is_number(word) && std::stoi(word) >= 1 && std::stoi(word) <= count_) place = std::stoi(word) - 1;
    if (place != kNone) return place;
    std::string known;
    for (const std::string& name : table_.columns) known += (known.empty() ? "" : ", ") + in_quotes(name, 40);
    fail<UsageError>(table_.name, ": found no column ", in_quotes(word, 40), ", expected ", known,
                     known.empty() ? "a number from 1 to " : " or a number from 1 to ", count_, did_you_mean(word, table_.columns));
  }

  void by_words() { chosen_ = {column(words_.text), column(words_.pair), column(words_.label)}; }

  // Who names a text and no pair wants none.
  bool wants_pair() const { return words_.text.empty() && words_.pair.empty(); }

  void by_names() {
    Words free = names_;  // a column has one meaning
    const auto take = [&](int column) {
      if (column != kNone && !free.empty()) free[static_cast<size_t>(column)].clear();
    };
    take(chosen_.text);
    take(chosen_.pair);
    if (chosen_.label == kNone) chosen_.label = first_known(free, kLabels);
    take(chosen_.label);
    if (chosen_.text != kNone) return;
    const auto [first, second] = known_pair(free);
    chosen_.text = first != kNone && wants_pair() ? first : first_known(free, kTexts);
    if (wants_pair()) chosen_.pair = second;
  }

  void by_contents() {
    if (chosen_.text != kNone && chosen_.label != kNone) return;
    std::vector<Holds> rest;
    for (int c = 0; c < count_; ++c)
      if (c != chosen_.text && c != chosen_.pair && c != chosen_.label) rest.push_back(look_at(table_, c));
    if (chosen_.label == kNone) choose_label(rest);
    if (chosen_.text == kNone) choose_texts(rest);
  }

  // The column of the fewest values; one value in all rows tells nothing, unless there is no other choice.
  void choose_label(std::vector<Holds>& rest) {
    const auto rank = [&](const Holds& column) {
      return std::tuple(column.sentences, rest.size() > 1 && count_ > 2 && column.different == 1, column.different, column.bytes);
    };
    const auto best = std::min_element(rest.begin(), rest.end(), [&](const Holds& a, const Holds& b) { return rank(a) < rank(b); });
    constexpr size_t few = 10;
    const size_t rows = table_.rows.size();
    check<FileError>(best != rest.end() && (rows < few || best->different <= rows / 2), table_.name, ": found no column of labels: ",
                     best == rest.end() ? std::string("none is left")
                                        : "column " + std::to_string(best->column + 1) + " has " + std::to_string(best->different) +
                                              " different values in " + std::to_string(rows) + " rows",
                     ", expected a label to come again and again; say which column is the label");
    chosen_.label = best->column;
    rest.erase(best);
  }

  void choose_texts(std::vector<Holds> rest) {
    check<FileError>(!rest.empty(), table_.name, ": found no column of texts among ", count_, "; say which column is the text");
    if (std::none_of(rest.begin(), rest.end(), [](const Holds& column) { return column.sentences; }))
      rest = {*std::max_element(rest.begin(), rest.end(), [](const Holds& a, const Holds& b) { return a.bytes < b.bytes; })};
    else
      std::erase_if(rest, [](const Holds& column) { return !column.sentences; });
    check<FileError>(rest.size() <= 2, table_.name, ": found ", rest.size(), " columns of sentences, expected one, or two for pairs; ",
                     "say which column is the text and which the pair");
    chosen_.text = rest.front().column;
    if (rest.size() == 2 && wants_pair()) chosen_.pair = rest.back().column;
  }

  const Table& table_;
  const TextColumns& words_;
  const int count_;
  Words names_;  // in lower case
  Chosen chosen_;
};

}  // namespace

std::vector<LabelledText> parse_labelled(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns) {
  Table table = parse_table(name, text, kind);
  check<FileError>(!table.rows.empty(), name, ": found no rows, expected a text and a label in each");
  if (table.columns.empty() && has_header(table, columns)) {
    table.columns = std::move(table.rows.front().cells);
    table.rows.erase(table.rows.begin());
    check<FileError>(!table.rows.empty(), name, ": found a header and no rows, expected a text and a label in each");
  }
  const Chosen chosen = Chooser(table, columns).choose();
  const auto cell = [&](TableRow& row, int column, const char* what) -> std::string&& {
    std::string& found = row.cells[static_cast<size_t>(column)];
    check<FileError>(!found.empty(), table.at(row), ": found no ", what, " in column ",
                     table.columns.empty() ? std::to_string(column + 1) : in_quotes(table.columns[static_cast<size_t>(column)], 40),
                     ", expected one in every row");
    return std::move(found);
  };
  std::vector<LabelledText> out;
  out.reserve(table.rows.size());
  for (TableRow& row : table.rows) {
    LabelledText& item = out.emplace_back();
    item.text = cell(row, chosen.text, "text");
    if (chosen.pair != kNone) item.pair = cell(row, chosen.pair, "second text");
    item.label = cell(row, chosen.label, "label");
  }
  return out;
}

std::vector<LabelledText> read_labelled(const std::string& where, const TextColumns& columns) {
  for (const auto& [name, part, count] : {std::tuple("", DataPart::train, 8000), std::tuple("/validation", DataPart::validation, 1000),
                                          std::tuple("/test", DataPart::test, 1000)}) {
    if (where == std::string("opinions") + name) return made_opinions(count, 1, part);
    if (where == std::string("entailment") + name) return made_entailment(count, 1, part);
  }
  std::string kind = where.ends_with(".gz") ? where.substr(0, where.size() - 3) : where;
  kind = Path(kind).extension().string();
  const bool tsv = kind == ".tsv", csv = kind == ".csv", jsonl = kind == ".jsonl";
  check<FileError>(tsv || csv || jsonl, where, ": found the ending ", in_quotes(kind, 20),
                   ", expected .tsv, .csv or .jsonl, each also with .gz; ", "opinions and entailment are made by rule");
  return parse_labelled(where, read_packed_text(where), tsv ? TableKind::tsv : csv ? TableKind::csv : TableKind::jsonl, columns);
}

}  // namespace heed
