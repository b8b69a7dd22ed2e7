// Text data sets: labelled sentences, translation pairs, documents. Any file may be gzip-compressed. Errors are FileErrors that name file
// and line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/data/image_data.h"

namespace HEED_API heed {

// A UTF-8 text file, plain or gzip-compressed (detected by its first bytes). A byte order mark is dropped. `limit`: uncompressed bytes.
std::string read_text_or_gzip(const Path& path, int64_t limit = int64_t{4} << 30);

// Iterates over lines without their line ends (\n or \r\n). A trailing newline does not add an empty line.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : text_(text) {}
  bool next(std::string_view& line);  // false at the end

 private:
  std::string_view text_;
};

// A sentence or a pair of them, with the name of its class.
struct LabelledText {
  std::string text;
  std::optional<std::string> pair = {};
  std::string label;
};
// Columns of a table: a header name or a number from 1; empty: detected by name (text, sentence, label, sentiment, en, de, ...) or, without
// a header, by contents. Setting text without pair means no pair. An unknown column is a UsageError. All commands call these settings
// text_column, pair_column, label_column, source_column and target_column.
struct TextColumns {
  std::string text = {}, pair = {}, label = {}, source = {}, target = {};
};
using ColumnSetting = std::pair<const char*, std::string TextColumns::*>;
const std::vector<ColumnSetting>& column_settings();  // {"text_column", &TextColumns::text}, ...

// A column that was read, and the setting that names it.
struct ChosenColumn {
  std::string setting, name;  // "text_column", "review"; name is empty without a header
  int64_t number = 0;         // from 1
  std::string word() const { return name.empty() ? std::to_string(number) : name; }  // as a user would type it
};
using ChosenColumns = std::vector<ChosenColumn>;  // of one table
std::string columns_text(const std::string& file,
                         const ChosenColumns& chosen);  // "columns of FILE: text_column=review, label_column=stars"

// By extension: .tsv, .csv (quotes as in RFC 4180), .jsonl, each also with .gz.
bool is_table_file(const std::string& where);
// For a folder, its train.tsv, train.csv or train.jsonl (also .gz) if there is one; otherwise `where` itself.
std::string train_table_of(const std::string& where);
// "dev.tsv" next to "train.tsv": the file of the first of these names that exists; empty: none
std::string sibling_table(const std::string& train, const std::vector<std::string>& names);
inline const std::vector<std::string> kValidationNames = {"dev", "validation", "valid", "val"};

// A table file, or the synthetic "opinions" or "entailment" (8000 items, seed 1; with "/validation" or "/test" 1000). chosen: the columns
// read, empty for synthetic data
std::vector<LabelledText> read_labelled(const std::string& where, const TextColumns& columns = {}, ChosenColumns* chosen = nullptr);

// A sentence and its translation.
struct Translation {
  std::string source, target;
};
// Line i of one file is the translation of line i of the other. Pairs with an empty side are dropped.
std::vector<Translation> read_parallel(const Path& source, const Path& target);

struct LanguageCodes {  // "en", "de": possible names of columns or files
  std::string source = {}, target = {};
};
// A table file, or two parallel text files separated by a comma: "train.en,train.de". Pairs with an empty side are dropped.
std::vector<Translation> read_translations(const std::string& where, const TextColumns& columns = {}, const LanguageCodes& languages = {},
                                           ChosenColumns* chosen = nullptr);
bool is_file_pair(const std::string& where);  // "a,b", unless a file has that name

// Plain text; blank lines separate documents. A folder: every .txt (.gz) starts a new document. Returns the sentences of each document.
std::vector<std::vector<std::string>> read_documents(const Path& path);
std::vector<std::string> sentences_of(std::string_view text);  // split after . ! ? at sentence boundaries

// --- synthetic: item i is a function of (seed, part, i), whatever the count ------------------- synthetic_text.cc, synthetic_numbers.cc
// A hash of the text assigns a tenth of all possible items to test and a tenth to validation, so parts never share an item, whatever
// the seeds.
std::vector<LabelledText> synthetic_opinions(int64_t count, uint64_t seed, DataPart part = DataPart::train);  // "positive", "negative"
std::vector<LabelledText> synthetic_entailment(int64_t count, uint64_t seed,
                                               DataPart part = DataPart::train);  // "follows", "does not follow"
enum class NumberLanguage { english, german, french };
// 0 to 999,999. English without "and"; German in one word, with "ein" before hundert and tausend; French in the spelling before 1990:
// hyphens only below a hundred and not next to "et".
std::string number_words(int64_t number, NumberLanguage language);
DataPart part_of_number(int64_t number);  // 0 is always train: no other number contains its word
// Cycles through numbers of all lengths until the short ones run out; none repeats before the part is exhausted.
std::vector<Translation> synthetic_numbers(int64_t count, uint64_t seed, NumberLanguage from, NumberLanguage to,
                                           DataPart part = DataPart::train);

}  // namespace heed
