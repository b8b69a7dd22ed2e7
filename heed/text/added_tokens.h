// Added tokens ([MASK], <|endoftext|>, ...): matched in the text before it is split into words.
#pragma once

#include "heed/text/normalizer.h"
#include "heed/text/pre_tokenizer.h"
#include "heed/text/trie.h"
#include "heed/text/vocabulary.h"

namespace heed::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;                 // dropped by decode(skip_special)
  bool single_word = false;             // only if no word character is adjacent
  bool lstrip = false, rstrip = false;  // also consumes the whitespace on that side
  bool normalized = false;              // matched after normalization, in its normalized form
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  // Splits a raw or normalized text at its added tokens; these words carry their token id.
  void split(std::string_view text, bool normalized, std::vector<Word>& out) const;

  const std::vector<AddedToken>& all() const { return tokens_; }
  const AddedToken* find(int64_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  std::vector<AddedToken> tokens_;
  Trie raw_, normalized_;               // contents -> index into tokens_
  bool starts_with_byte_[2][256] = {};  // [normalized][byte]: whether a token starts with that byte
  NumberTable<uint32_t> index_of_id_;
};

AddedTokens read_added_tokens(const JsonReader& list, const Vocabulary& vocabulary, const Normalizer& normalizer);

}  // namespace heed::text
