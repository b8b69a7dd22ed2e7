// Texts to learn from: labelled sentences, pairs of languages, documents. Any file may be packed by gzip. What is wrong is a
// FileError that names file and line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/picture_data.h"

namespace heed {

// A text file in UTF-8, plain or packed by gzip: its first bytes tell. A byte order mark is dropped. `limit`: bytes after unpacking.
std::string read_packed_text(const Path& path, int64_t limit = int64_t{4} << 30);

// The lines of a text, one at a time, without line ends, \r among them; a last empty line is none.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : text_(text) {}
  bool next(std::string_view& line);  // false: there is none left

 private:
  std::string_view text_;
};

struct LabelledText {
  std::string text;
  std::optional<std::string> pair = {};
  std::string label;
};
// Which columns of a table: a name in the header or a number from 1; empty: found by their names (text, sentence, label, sentiment, en,
// de, ...) or, where there is no header, by what they hold. Whoever names the text and no pair gets none. A word that fits no column is a
// UsageError. The settings of all commands are called text_column, pair_column, label_column, source_column and target_column.
struct TextColumns {
  std::string text = {}, pair = {}, label = {}, source = {}, target = {};
};
using ColumnSetting = std::pair<const char*, std::string TextColumns::*>;
const std::vector<ColumnSetting>& column_settings();  // {"text_column", &TextColumns::text}, ...

struct ChosenColumn {
  std::string setting, name;  // "text_column", "review"; no name: there is no header
  int64_t number = 0;         // from 1
  std::string word() const { return name.empty() ? std::to_string(number) : name; }
};
using ChosenColumns = std::vector<ChosenColumn>;
std::string columns_text(const std::string& file,
                         const ChosenColumns& chosen);  // "columns of FILE: text_column=review, label_column=stars"

// By the file's name: .tsv, .csv (quotes as in RFC 4180), .jsonl, each also with .gz.
bool is_table_file(const std::string& where);
// A folder with train.tsv, train.csv or train.jsonl (also .gz) stands for that file; anything else for itself.
std::string train_table_of(const std::string& where);
// "dev.tsv" beside "train.tsv": the first of these words for which there is such a file; empty: none
std::string table_beside(const std::string& train, const std::vector<std::string>& words);
inline const std::vector<std::string> kValidationWords = {"dev", "validation", "valid", "val"};

// A table file; "opinions" and "entailment" are made by rule (8000 of the train part with seed 1; "opinions/validation" and
// "opinions/test": 1000). chosen: which columns were read, none where there is no file
std::vector<LabelledText> read_labelled(const std::string& where, const TextColumns& columns = {}, ChosenColumns* chosen = nullptr);

struct Translation {
  std::string source, target;
};
// Line i of one file is line i of the other. Pairs with an empty side are left out.
std::vector<Translation> read_parallel(const Path& source, const Path& target);

struct LanguageCodes {  // "en", "de": columns or files may be called so
  std::string source = {}, target = {};
};
// A table file, or two files of lines with a comma between their names: "train.en,train.de". Pairs with an empty side are left out.
std::vector<Translation> read_translations(const std::string& where, const TextColumns& columns = {}, const LanguageCodes& languages = {},
                                           ChosenColumns* chosen = nullptr);
bool is_file_pair(const std::string& where);  // "a,b", where no file is called so

// Plain text: blank lines part documents. A folder: every .txt (.gz) in it is one document at least. -> sentences of each document
std::vector<std::vector<std::string>> read_documents(const Path& path);
std::vector<std::string> sentences_of(std::string_view text);  // cut behind . ! ? where a new one begins

// --- made by rule: item i is a function of (seed, part, i), whatever the count ------------------- made_text.cc, made_numbers.cc
// Of all that can be made, a tenth belongs to test and a tenth to validation, by a hash of what it says: parts never share an item,
// whatever their seeds.
std::vector<LabelledText> made_opinions(int64_t count, uint64_t seed, DataPart part = DataPart::train);    // "positive", "negative"
std::vector<LabelledText> made_entailment(int64_t count, uint64_t seed, DataPart part = DataPart::train);  // "follows", "does not follow"
enum class NumberLanguage { english, german, french };
// 0 to 999,999. English without "and"; German in one word, with "ein" before hundert and tausend; French with hyphens below a hundred
// alone, where there is no "et" (the spelling from before 1990).
std::string number_words(int64_t number, NumberLanguage language);
DataPart part_of_number(int64_t number);  // 0 has a word of its own in every language and is train's
// Numbers of every length, the short ones first and then ever fewer of them; none comes twice before the part is used up.
std::vector<Translation> made_numbers(int64_t count, uint64_t seed, NumberLanguage from, NumberLanguage to,
                                      DataPart part = DataPart::train);

}  // namespace heed
