#include "heed/text/added_tokens.h"

namespace heed::text {
namespace {

constexpr size_t kLongestToken = 1024;  // bytes; bounds the matching cost per position

bool is_word(char32_t c) { return classes_of(c) & kWord; }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    Aligned content(token.content);
    if (token.normalized && normalizer) normalizer(content);
    check<FileError>(content.text.size() <= kLongestToken, "the added token ", in_quotes(token.content, 40), " has ", content.text.size(),
                     " bytes when normalized, expected at most ", kLongestToken);
    index_of_id_[static_cast<uint64_t>(token.id)] = static_cast<uint32_t>(i);
    if (content.text.empty()) continue;
    (token.normalized ? normalized_ : raw_).insert(content.text, static_cast<int32_t>(i));
    starts_with_byte_[token.normalized][static_cast<unsigned char>(content.text[0])] = true;
  }
}

void AddedTokens::split(std::string_view text, bool normalized, std::vector<Word>& out) const {
  const Trie& trie = normalized ? normalized_ : raw_;
  const auto span = [](size_t begin, size_t end) { return Span{static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}; };
  size_t done = 0;  // bytes already emitted
  for (size_t i = 0; !trie.empty() && i < text.size();) {
    const Trie::Match match = starts_with_byte_[normalized][static_cast<unsigned char>(text[i])] ? trie.longest(text, i) : Trie::Match{};
    if (match.value < 0) {
      ++i;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    size_t begin = i, end = match.end;
    i = match.end;
    const bool touched =
        (begin > 0 && is_word(char_at(text, char_before(text, begin)))) || (end < text.size() && is_word(char_at(text, end)));
    if (token.single_word && touched) continue;
    while (token.lstrip && begin > done && is_space(char_at(text, char_before(text, begin)))) begin = char_before(text, begin);
    while (token.rstrip && end < text.size() && is_space(char_at(text, end))) end += char_bytes(text[end]);
    if (begin > done) out.push_back({span(done, begin)});
    out.push_back({span(begin, end), token.id});
    done = end;
    i = std::max(i, end);
  }
  if (done < text.size()) out.push_back({span(done, text.size())});
}

const AddedToken* AddedTokens::find(int64_t id) const {
  const uint32_t* index = id < 0 ? nullptr : index_of_id_.find(static_cast<uint64_t>(id));
  return index ? &tokens_[*index] : nullptr;
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  for (const AddedToken& token : tokens_)
    if (token.content == content) return &token;
  return nullptr;
}

AddedTokens read_added_tokens(const JsonReader& list, const Vocabulary& vocabulary, const Normalizer& normalizer) {
  std::vector<AddedToken> tokens;
  StringTable seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader json = list[i];
    AddedToken token;
    token.content = json.text("content");
    if (token.content.size() > kLongestToken)
      json.refuse("found ", in_quotes(token.content, 40), " of ", token.content.size(), " bytes, expected at most ", kLongestToken);
    const int64_t id = json["id"].whole(), known = vocabulary.find(token.content);
    if (id < 0 || id >= kMaxTokenId) json.refuse("found the id ", id, ", expected one from 0 to ", kMaxTokenId - 1);
    if (known >= 0 && known != id)
      json.refuse("found the id ", id, " for ", in_quotes(token.content), ", expected ", known, " as in the vocabulary");
    if (!seen.insert(token.content, 0)) json.refuse("found ", in_quotes(token.content), " a second time, expected it once");
    token.id = static_cast<int32_t>(id);
    token.special = json.flag_or("special", false);
    token.single_word = json.flag_or("single_word", false);
    token.lstrip = json.flag_or("lstrip", false);
    token.rstrip = json.flag_or("rstrip", false);
    token.normalized = json.flag_or("normalized", !token.special);
    tokens.push_back(std::move(token));
  }
  return {std::move(tokens), normalizer};
}

}  // namespace heed::text
