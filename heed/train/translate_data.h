// Parallel sentences for translation: where they are read from, and their tokens.
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
  TextColumns columns = {};                              // of a table file
  ParallelFiles train = {}, validation = {}, test = {};  // instead of data

  bool is_synthetic() const { return data == "numbers" && train.source.empty() && train.target.empty(); }
};
void declare(Settings& settings, ParallelOptions& options);

struct ParallelTexts {
  std::vector<Translation> train, validation, test;
  std::string columns = {};  // columns read from the table, to show to the user; empty without a table
};
// share, seed: fraction of the training part to hold out if there is no validation part
ParallelTexts read_parallel_texts(const ParallelOptions& options, double share, uint64_t seed);

// Extensions of train.* in a folder, e.g. train.en, train.de: the available languages.
std::vector<std::string> languages_in(const Path& folder);
// A part of "numbers", "numbers:french:english" (synthetic) or of a folder of parallel text, or anything read_translations accepts.
std::vector<Translation> read_translation_data(const std::string& where, DataPart part, const TextColumns& columns,
                                               const LanguageCodes& languages = {}, ChosenColumns* chosen = nullptr);

struct EncodedPairs {
  std::vector<Translation> texts = {};
  std::vector<std::vector<int64_t>> source = {}, target = {};  // token ids per sentence

  int64_t count() const { return std::ssize(texts); }
  std::vector<int64_t> lengths() const;  // source plus target tokens
};
// most: maximum tokens per sentence, longer ones are truncated; 0: unlimited
EncodedPairs encode_pairs(std::vector<Translation> texts, const Tokenizer& source, const Tokenizer& target, int64_t most);
// Drops pairs with more than `most` tokens on either side.
EncodedPairs drop_long_pairs(EncodedPairs pairs, int64_t most);

}  // namespace heed
