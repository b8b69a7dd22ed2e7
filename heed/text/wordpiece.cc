// WordPiece, and the word-level model.
#include "heed/text/model.h"
#include "heed/text/trie.h"

namespace heed::text {
namespace {

int32_t unknown_id(const Vocabulary& vocabulary, const std::string& unknown, const std::string& source) {
  const int32_t id = vocabulary.find(unknown);
  check<FileError>(id >= 0, source, ": found no ", in_quotes(unknown), " in the vocabulary, expected the token of unknown words there");
  return id;
}

class WordPiece : public Model {
 public:
  WordPiece(Vocabulary vocabulary, const WordPieceOptions& options, const std::string& source)
      : Model(std::move(vocabulary)),
        unknown_(unknown_id(this->vocabulary(), options.unknown, source)),
        max_chars_per_word_(options.max_chars_per_word) {
    const Vocabulary& all = this->vocabulary();
    for (int64_t id = 0; id < all.id_limit(); ++id) {
      if (!all.has(id)) continue;
      const std::string_view token = all.token(id);
      initial_.insert(token, static_cast<int32_t>(id));
      if (token.starts_with(options.continuing_prefix))
        continuing_.insert(token.substr(options.continuing_prefix.size()), static_cast<int32_t>(id));
    }
  }

  void split(std::string_view word, TokenSpans& out) const override {
    const size_t before = out.size();
    const auto end_of = [](size_t i) { return static_cast<uint32_t>(i); };
    bool known = std::ssize(word) <= max_chars_per_word_ || count_chars(word) <= max_chars_per_word_;
    for (size_t i = 0; known && i < word.size();) {
      const Trie::Match match = (i == 0 ? initial_ : continuing_).longest(word, i);
      known = match.value >= 0;
      if (known) out.push_back({match.value, end_of(i), end_of(match.end)});
      i = match.end;
    }
    if (known) return;
    out.resize(before);
    out.push_back({unknown_, 0, end_of(word.size())});
  }

 private:
  Trie initial_, continuing_;  // tokens; continuing tokens without their prefix
  int32_t unknown_;
  int64_t max_chars_per_word_;
};

class WordLevel : public Model {
 public:
  WordLevel(Vocabulary vocabulary, const std::string& unknown, const std::string& source)
      : Model(std::move(vocabulary)), unknown_(unknown_id(this->vocabulary(), unknown, source)) {}

  void split(std::string_view word, TokenSpans& out) const override {
    const int32_t id = vocabulary().find(word);
    out.push_back({id < 0 ? unknown_ : id, 0, static_cast<uint32_t>(word.size())});
  }

 private:
  int32_t unknown_;
};

}  // namespace

ModelPointer make_wordpiece(Vocabulary vocabulary, const WordPieceOptions& options, const std::string& source) {
  return std::make_unique<WordPiece>(std::move(vocabulary), options, source);
}

ModelPointer make_word_level(Vocabulary vocabulary, const std::string& unknown, const std::string& source) {
  return std::make_unique<WordLevel>(std::move(vocabulary), unknown, source);
}

}  // namespace heed::text
