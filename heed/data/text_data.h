// Texts to learn from: labelled sentences, pairs of languages, documents. Any file may be packed by gzip. What is wrong is a
// FileError that names file and line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/io/file.h"

namespace heed {

// A text file, plain or packed by gzip: its first bytes tell. `limit`: bytes after unpacking.
std::string read_packed_text(const Path& path, int64_t limit = int64_t{4} << 30);
std::vector<std::string> lines_of(std::string text);  // without line ends, \r among them; a last empty line is none

struct LabelledText {
  std::string text;
  std::optional<std::string> pair = {};
  std::string label;
};
// Which columns: a name in the header or a number from 1; empty: by their names (text, sentence, label, sentiment, ...) or, where there
// is no header, by what they hold.
struct TextColumns {
  std::string text = {}, pair = {}, label = {};
};
// By the file's name: .tsv, .csv (quotes as in RFC 4180), .jsonl, each also with .gz; "opinions" and "entailment" are made by rule.
std::vector<LabelledText> read_labelled(const std::string& where, const TextColumns& columns = {});

struct Translation {
  std::string source, target;
};
// Line i of one file is line i of the other. Pairs with an empty side are left out.
std::vector<Translation> read_parallel(const Path& source, const Path& target);

// Plain text: blank lines part documents. A folder: every .txt (.gz) in it is one document at least. -> sentences of each document
std::vector<std::vector<std::string>> read_documents(const Path& path);
std::vector<std::string> sentences_of(std::string_view text);  // cut behind . ! ? where a new one begins

// --- made by rule: item i is a function of (seed, i) ---------------------------------------------------------- made_text.cc
std::vector<LabelledText> made_opinions(int64_t count, uint64_t seed);    // "positive", "negative"
std::vector<LabelledText> made_entailment(int64_t count, uint64_t seed);  // pairs: "follows", "does not follow"
enum class NumberLanguage { english, german, french };
std::string number_words(int64_t number, NumberLanguage language);  // 0 to 999,999
std::vector<Translation> made_numbers(int64_t count, uint64_t seed, NumberLanguage from, NumberLanguage to);

}  // namespace heed
