// Unigram: the best segmentation by dynamic programming over the bytes of a word (Viterbi 1967), with a trie of all tokens.
#include <algorithm>
#include <cmath>

#include "heed/text/model.h"
#include "heed/text/trie.h"

namespace heed::text {
namespace {

constexpr double kUnknownPenalty = 10;  // below the least likely token, as in SentencePiece

class Unigram : public Model {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, const UnigramOptions& options)
      : Model(std::move(vocabulary)), scores_(std::move(scores)), unknown_(static_cast<int32_t>(options.unknown)) {
    const Vocabulary& all = this->vocabulary();
    for (int32_t id = 0; id < all.id_limit(); ++id) tokens_.insert(all.token(id), id);
    unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
    for (unsigned byte = 0; byte < 256; ++byte) {
      constexpr char digits[] = "0123456789ABCDEF";
      bytes_[byte] = options.byte_fallback ? all.find(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">") : -1;
    }
  }

  void split(std::string_view word, TokenSpans& out) const override {
    struct Best {  // best segmentation of the text before a byte
      double score = 0;
      int32_t id = -1;
      uint32_t begin = UINT32_MAX;  // of the last token
    };
    std::vector<Best> best(word.size() + 1);
    const auto relax = [&](size_t begin, size_t end, int32_t id, double score) {
      score += best[begin].score;
      if (best[end].begin == UINT32_MAX || score > best[end].score) best[end] = {score, id, static_cast<uint32_t>(begin)};
    };
    for (size_t i = 0; i < word.size(); i += char_bytes(word[i])) {
      const size_t next = i + char_bytes(word[i]);
      bool covered = false;
      tokens_.each_prefix(word, i, [&](size_t end, int32_t id) {
        relax(i, end, id, scores_[static_cast<size_t>(id)]);
        covered = covered || end == next;
      });
      if (covered) continue;
      if (unknown_ < 0)
        fail("unigram: found ", in_quotes(word.substr(i, next - i)),
             ", which no token covers, expected the model to have a token for unknown text");
      relax(i, next, unknown_, unknown_score_);
    }
    const size_t before = out.size();
    for (size_t end = word.size(); end > 0; end = best[end].begin) {
      const TokenSpan token{best[end].id, best[end].begin, static_cast<uint32_t>(end)};
      const bool fuse = token.id == unknown_ && out.size() > before && out.back().id == unknown_;
      if (fuse) {
        out.back().begin = token.begin;
      } else {
        out.push_back(token);
      }
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    resolve_unknown(word, before, out);
  }

 private:
  // Unknown text may still equal a token (e.g. the unknown token itself), or become byte tokens.
  void resolve_unknown(std::string_view word, size_t before, TokenSpans& out) const {
    const auto is_unknown = [this](const TokenSpan& token) { return token.id == unknown_; };
    if (std::none_of(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), is_unknown)) return;
    const TokenSpans tokens(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    out.resize(before);
    for (const TokenSpan& token : tokens) {
      const std::string_view text = word.substr(token.begin, token.end - token.begin);
      const auto byte_id = [this](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
      if (!is_unknown(token)) {
        out.push_back(token);
      } else if (const int32_t id = vocabulary().find(text); id >= 0) {
        out.push_back({id, token.begin, token.end});
      } else if (std::all_of(text.begin(), text.end(), [&](char byte) { return byte_id(byte) >= 0; })) {
        for (const char byte : text) out.push_back({byte_id(byte), token.begin, token.end});
      } else {
        out.push_back(token);
      }
    }
  }

  Trie tokens_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  int32_t unknown_;
  int32_t bytes_[256] = {};
};

}  // namespace

ModelPointer make_unigram(Vocabulary vocabulary, const std::vector<double>& scores, const UnigramOptions& options,
                          const std::string& source) {
  check<FileError>(!scores.empty() && std::ssize(scores) == vocabulary.count() && vocabulary.count() == vocabulary.id_limit(), source,
                   ": found ", scores.size(), " scores for ", vocabulary.count(), " tokens, expected one each");
  check<FileError>(options.unknown >= -1 && options.unknown < vocabulary.count(), source, ": found the unknown token ", options.unknown,
                   ", expected an id below ", vocabulary.count());
  for (const double score : scores) check<FileError>(std::isfinite(score), source, ": found a score that is not a finite number");
  return std::make_unique<Unigram>(std::move(vocabulary), scores, options);
}

}  // namespace heed::text
