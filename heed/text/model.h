// A model splits a word of the pre-tokenizer into tokens.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/text/vocabulary.h"

namespace HEED_API heed {
namespace text {

struct TokenSpan {
  int32_t id = 0;
  uint32_t begin = 0, end = 0;  // bytes of the word; may be part of a character
};
using TokenSpans = std::vector<TokenSpan>;

class Model {
 public:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual void split(std::string_view word, TokenSpans& out) const = 0;  // appends to out
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
};
using ModelPointer = std::unique_ptr<const Model>;

// The model of a tokenizer.json. `byte_level`: words are bytes, and each character of a token encodes one byte.
ModelPointer make_model(const JsonReader& json, bool byte_level);

// WordPiece (Wu et al. 2016): greedy longest match from the left; if a position matches no token, the whole word is unknown.
struct WordPieceOptions {
  std::string unknown = "[UNK]", continuing_prefix = "##";
  int64_t max_chars_per_word = 100;  // longer words are unknown
};
ModelPointer make_wordpiece(Vocabulary vocabulary, const WordPieceOptions& options, const std::string& source);

// Every word is one token.
ModelPointer make_word_level(Vocabulary vocabulary, const std::string& unknown, const std::string& source);

// Byte pair encoding (Sennrich, Haddow and Birch 2016): repeatedly merges the adjacent pair with the lowest rank in the merge list.
struct BpeOptions {
  std::string unknown;  // empty: unknown text is dropped
  std::string continuing_prefix, word_suffix;
  bool byte_level = false, byte_fallback = false, fuse_unknown = false, ignore_merges = false;
};
using Merges = std::vector<std::pair<std::string, std::string>>;
ModelPointer make_bpe(Vocabulary vocabulary, const Merges& merges, const BpeOptions& options, const std::string& source);
Merges read_merges(const Path& path);  // merges.txt

// Unigram (Kudo 2018): the segmentation with the highest total log probability.
struct UnigramOptions {
  int64_t unknown = -1;  // id; -1: text that no token covers is an error
  bool byte_fallback = false;
};
ModelPointer make_unigram(Vocabulary vocabulary, const std::vector<double>& scores, const UnigramOptions& options,
                          const std::string& source);

}  // namespace text
}  // namespace heed
