// Training of vocabularies: WordPiece, byte-level BPE, whole words, characters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/file.h"
#include "heed/text/model.h"

namespace HEED_API heed {

// The kind of tokens.
enum class VocabularyKind { wordpiece, bpe, words, characters };

// Size and contents of a vocabulary.
struct TrainVocabularyOptions {
  VocabularyKind kind = VocabularyKind::wordpiece;
  int64_t size = 30000;           // maximum number of tokens, including special ones
  int64_t min_count = 2;          // rarer pairs and words do not become tokens
  int64_t limit_alphabet = 1000;  // characters in WordPiece's alphabet; rarer ones are unknown
  bool lowercase = true;          // and strip accents; not for BPE
};

// The size of the vocabulary that was written, and of the texts.
struct TrainedVocabulary {
  int64_t tokens = 0, words = 0, bytes = 0;  // tokens in the vocabulary, distinct words and bytes read
};

// Trains on text files and writes tokenizer.json and the older formats (vocab.txt, or vocab.json and merges.txt) into a folder, which
// is created if needed. The result does not depend on the number of threads.
TrainedVocabulary train_vocabulary(std::span<const Path> files, const Path& folder, const TrainVocabularyOptions& options);

namespace text {

// A distinct word of the text, and how often it occurs.
struct CountedWord {
  std::string text;
  int64_t count = 0;
};

// The tokens of BPE and the merges that make them.
struct TrainedMerges {
  std::vector<std::string> tokens;  // by id
  Merges merges;
};

// Repeatedly merges the most frequent adjacent pair (Sennrich, Haddow and Birch 2016), on ties the one with smaller ids, until there
// are `size` tokens. `tokens`: the initial tokens, including the alphabet; characters outside it are dropped. `prefix` marks every
// token but the first of a word.
TrainedMerges train_merges(const std::vector<CountedWord>& words, std::vector<std::string> tokens, const std::string& prefix, int64_t size,
                           int64_t min_count);

}  // namespace text
}  // namespace heed
