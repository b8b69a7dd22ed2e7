// Tokens beside the model's own: [MASK], <|endoftext|> and others that are found in the text before anything cuts it.
#pragma once

#include "heed/text/normalizer.h"
#include "heed/text/pre_tokenizer.h"
#include "heed/text/trie.h"
#include "heed/text/vocabulary.h"

namespace heed::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;                 // left out when text is decoded for people
  bool single_word = false;             // only where no letter or digit touches it
  bool lstrip = false, rstrip = false;  // takes the spaces on that side along
  bool normalized = false;              // looked for after normalization, in its own normalized form
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  // Cuts a text, or the normalized text, at its added tokens: words that are tokens carry an id.
  void split(std::string_view text, bool normalized, std::vector<Word>& out) const;

  const std::vector<AddedToken>& all() const { return tokens_; }
  const AddedToken* find(int64_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  std::vector<AddedToken> tokens_;
  Trie raw_, normalized_;     // their contents; values are places in tokens_
  bool begins_[2][256] = {};  // whether one of them begins with a byte
  NumberTable<uint32_t> of_id_;
};

AddedTokens read_added_tokens(const JsonPart& list, const Vocabulary& vocabulary, const Normalizer& normalizer);

}  // namespace heed::text
