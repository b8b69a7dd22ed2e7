// Vocabularies learned from text: WordPiece, byte-level BPE, whole words, characters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/io/file.h"
#include "heed/text/model.h"

namespace heed {

enum class VocabularyKind { wordpiece, bpe, words, characters };

struct TrainVocabulary {
  VocabularyKind kind = VocabularyKind::wordpiece;
  int64_t size = 30000;       // tokens, the special ones among them; fewer when the text does not have so many
  int64_t min_count = 2;      // what is rarer does not become a token
  int64_t most_chars = 1000;  // of the alphabet of WordPiece; the rarest beyond are unknown
  bool lowercase = true;      // and without accents; not for BPE
};

struct TrainedVocabulary {
  int64_t tokens = 0, words = 0, bytes = 0;  // learned; different words and bytes read
};

// Learns from text files and writes tokenizer.json and the older files beside it (vocab.txt, or vocab.json and merges.txt) into a
// folder, which is made when it is not there. The same text gives the same files, whatever the number of threads.
TrainedVocabulary train_vocabulary(std::span<const Path> files, const Path& folder, const TrainVocabulary& options);

namespace text {

struct CountedWord {
  std::string text;
  int64_t count = 0;
};

struct LearnedMerges {
  std::vector<std::string> tokens;  // by id
  Merges merges;
};

// Merges the most frequent pair of neighbours again and again (Sennrich, Haddow and Birch 2016), the earlier of equals first, until
// there are `size` tokens. `tokens`: those that are there from the start, the characters of the words among them; characters that
// are not there are left out. `prefix` stands before every token but the first of a word.
LearnedMerges learn_merges(const std::vector<CountedWord>& words, std::vector<std::string> tokens, const std::string& prefix, int64_t size,
                           int64_t min_count);

}  // namespace text
}  // namespace heed
