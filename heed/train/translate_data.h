// Sentences in two languages to learn from: where they come from, and what they are in tokens.
#pragma once

#include "heed/data/text_data.h"
#include "heed/text/tokenizer.h"
#include "heed/train/settings.h"

namespace heed {

struct ParallelFiles {
  std::string source = {}, target = {};
};

struct ParallelOptions {
  std::string data = "numbers";
  std::string source = {}, target = {};
  int64_t count = 0;
  std::string validation_data = {}, test_data = {};
  TextColumns columns = {};                              // of tables
  ParallelFiles train = {}, validation = {}, test = {};  // in place of data

  bool made() const { return data == "numbers" && train.source.empty() && train.target.empty(); }
};
void declare(Settings& settings, ParallelOptions& options);

struct ParallelTexts {
  std::vector<Translation> train, validation, test;
  std::string columns = {};  // which ones of the table were read, for people; empty: there is no table
};
// share, seed: of what is kept out of the training part where there is no validation part
ParallelTexts read_parallel_texts(const ParallelOptions& options, double share, uint64_t seed);

// How the files of a folder end that are called train.en, train.de: the languages that there are.
std::vector<std::string> languages_in(const Path& folder);
// "numbers", "numbers:french:english" (of the part), or what read_translations takes.
std::vector<Translation> read_translation_data(const std::string& where, DataPart numbers, const TextColumns& columns,
                                               const LanguageCodes& languages = {}, ChosenColumns* chosen = nullptr);

struct EncodedPairs {
  std::vector<Translation> texts = {};
  std::vector<std::vector<int64_t>> source = {}, target = {};  // tokens of each

  int64_t count() const { return std::ssize(texts); }
  std::vector<int64_t> lengths() const;  // of both sides together
};
// most: tokens of a sentence, the rest is cut; 0: any number
EncodedPairs encode_pairs(std::vector<Translation> texts, const Tokenizer& source, const Tokenizer& target, int64_t most);
// Without the pairs of which one side has more than so many tokens.
EncodedPairs without_long_ones(EncodedPairs pairs, int64_t most);

// Rows as a matrix (B, N) i64, with `filler` behind the shorter ones.
Tensor padded_rows(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> which, int64_t filler);

}  // namespace heed
