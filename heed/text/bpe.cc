// Byte pair encoding. The best pair is found by a scan in short words and with a heap in long ones: O(n log n) for any word.
#include <algorithm>
#include <queue>

#include "heed/text/byte_chars.h"
#include "heed/text/model.h"
#include "heed/text/number_table.h"

namespace heed::text {
namespace {

constexpr uint32_t kNoMerge = UINT32_MAX;
constexpr size_t kShortWord = 40;  // symbols; up to this length a scan beats a heap

struct Merge {
  uint32_t rank = kNoMerge;
  int32_t id = -1;  // the merged token
};

uint64_t pair_key(int32_t a, int32_t b) { return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b); }

std::string fallback_token(unsigned byte) {
  constexpr char digits[] = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

class Bpe : public Model {
 public:
  Bpe(Vocabulary vocabulary, const Merges& merges, const BpeOptions& options, const std::string& source)
      : Model(std::move(vocabulary)), options_(options) {
    const Vocabulary& all = this->vocabulary();
    if (!options.unknown.empty()) unknown_ = all.find(options.unknown);
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (options.byte_fallback) fallback_ids_[byte] = all.find(fallback_token(byte));
      if (!options.byte_level) continue;
      const std::string token = utf8(byte_chars()[byte]);
      for (const bool first : {false, true})
        for (const bool last : {false, true})
          byte_ids_[first][last][byte] = all.find((first ? "" : options.continuing_prefix) + token + (last ? options.word_suffix : ""));
    }
    if (options.byte_level && options.ignore_merges) {
      std::string bytes;
      for (int64_t id = 0; id < all.id_limit(); ++id)
        if (all.has(id) && from_byte_chars(all.token(id), bytes)) words_.insert(bytes, static_cast<int32_t>(id));
    }
    for (size_t rank = 0; rank < merges.size(); ++rank) add_merge(merges[rank], static_cast<uint32_t>(rank), source);
  }

  void split(std::string_view word, TokenSpans& out) const override {
    if (options_.ignore_merges) {
      const int32_t id = options_.byte_level ? words_.find(word) : vocabulary().find(word);
      if (id >= 0) return out.push_back({id, 0, static_cast<uint32_t>(word.size())});
    }
    const size_t before = out.size();
    options_.byte_level ? append_bytes(word, out) : append_chars(word, out);
    if (out.size() - before <= kShortWord) {
      merge_short(out, before);
    } else {
      merge_long(out, before);
    }
  }

 private:
  void add_merge(const Merges::value_type& merge, uint32_t rank, const std::string& source) {
    const Vocabulary& all = vocabulary();
    const auto& [left, right] = merge;
    const std::string& prefix = options_.continuing_prefix;
    const size_t skipped = !prefix.empty() && right.starts_with(prefix) ? prefix.size() : 0;
    const int32_t a = all.find(left), b = all.find(right), whole = all.find(left + right.substr(skipped));
    for (const auto& [token, id] : {std::pair(left, a), std::pair(right, b), std::pair(left + right.substr(skipped), whole)})
      check<FileError>(id >= 0, source, ": merge ", rank, ": found ", in_quotes(token), ", expected a token of the vocabulary");
    Merge& known = merges_[pair_key(a, b)];
    known = {rank, whole};  // a merge listed twice takes its last rank
  }

  Merge merge_of(int32_t a, int32_t b) const {
    const Merge* merge = merges_.find(pair_key(a, b));
    return merge ? *merge : Merge{};
  }

  void append_bytes(std::string_view word, TokenSpans& out) const {
    for (uint32_t i = 0; i < word.size(); ++i)
      append(byte_ids_[i == 0][i + 1 == word.size()][static_cast<unsigned char>(word[i])], {i, i + 1}, out);
  }

  void append_chars(std::string_view word, TokenSpans& out) const {
    std::string token;
    const bool plain = options_.continuing_prefix.empty() && options_.word_suffix.empty();
    for (size_t i = 0, end = 0; i < word.size(); i = end) {
      end = i + char_bytes(word[i]);
      std::string_view c = word.substr(i, end - i);
      if (!plain) {
        token.assign(i > 0 ? options_.continuing_prefix : "").append(c).append(end == word.size() ? options_.word_suffix : "");
        c = token;
      }
      const int32_t id = vocabulary().find(c);
      if (id >= 0 || !options_.byte_fallback || !append_fallback(word, i, end, out))
        append(id, {static_cast<uint32_t>(i), static_cast<uint32_t>(end)}, out);
    }
  }

  // Appends a character as byte tokens, if all of them exist.
  bool append_fallback(std::string_view word, size_t begin, size_t end, TokenSpans& out) const {
    const auto id_at = [&](size_t i) { return fallback_ids_[static_cast<unsigned char>(word[i])]; };
    for (size_t i = begin; i < end; ++i)
      if (id_at(i) < 0) return false;
    for (size_t i = begin; i < end; ++i) out.push_back({id_at(i), static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1)});
    return true;
  }

  struct ByteRange {
    uint32_t begin, end;
  };
  void append(int32_t id, ByteRange range, TokenSpans& out) const {
    const bool unknown = id < 0;
    if (unknown && unknown_ < 0) return;
    if (unknown && options_.fuse_unknown && !out.empty() && out.back().id == unknown_ && out.back().end == range.begin && range.begin > 0) {
      out.back().end = range.end;
    } else {
      out.push_back({unknown ? unknown_ : id, range.begin, range.end});
    }
  }

  void merge_short(TokenSpans& out, size_t begin) const {
    size_t count = out.size() - begin;
    TokenSpan* tokens = out.data() + begin;
    Merge next[kShortWord];  // of tokens i and i + 1
    for (size_t i = 0; i + 1 < count; ++i) next[i] = merge_of(tokens[i].id, tokens[i + 1].id);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i)
        if (next[i].rank < next[best].rank) best = i;
      if (next[best].rank == kNoMerge) break;
      tokens[best] = {next[best].id, tokens[best].begin, tokens[best + 1].end};
      std::copy(tokens + best + 2, tokens + count, tokens + best + 1);
      --count;
      std::copy(next + best + 1, next + count, next + best);
      if (best > 0) next[best - 1] = merge_of(tokens[best - 1].id, tokens[best].id);
      if (best + 1 < count) next[best] = merge_of(tokens[best].id, tokens[best + 1].id);
    }
    out.resize(begin + count);
  }

  // A token merged into its left neighbour gets id -1.
  void merge_long(TokenSpans& out, size_t begin) const {
    struct Candidate {
      Merge merge;
      uint32_t left, right;
      int32_t left_id, right_id;  // the candidate is outdated if they changed
      bool operator<(const Candidate& other) const {
        return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
      }
    };
    constexpr uint32_t none = UINT32_MAX;
    TokenSpan* tokens = out.data() + begin;
    const auto count = static_cast<uint32_t>(out.size() - begin);
    std::vector<uint32_t> before(count), after(count);
    std::vector<Candidate> first;
    const auto candidate = [&](uint32_t a, uint32_t b) {
      return Candidate{merge_of(tokens[a].id, tokens[b].id), a, b, tokens[a].id, tokens[b].id};
    };
    for (uint32_t i = 0; i < count; ++i) {
      before[i] = i == 0 ? none : i - 1;
      after[i] = i + 1 == count ? none : i + 1;
      if (i + 1 == count) break;
      if (const Candidate pair = candidate(i, i + 1); pair.merge.rank != kNoMerge) first.push_back(pair);
    }
    std::priority_queue<Candidate> queue({}, std::move(first));
    while (!queue.empty()) {
      const Candidate pair = queue.top();
      queue.pop();
      const uint32_t left = pair.left, right = pair.right;
      if (tokens[left].id != pair.left_id || tokens[right].id != pair.right_id || after[left] != right) continue;
      tokens[left] = {pair.merge.id, tokens[left].begin, tokens[right].end};
      tokens[right].id = -1;
      after[left] = after[right];
      if (after[left] != none) before[after[left]] = left;
      const auto push_candidate = [&](const Candidate& next) {
        if (next.merge.rank != kNoMerge) queue.push(next);
      };
      if (before[left] != none) push_candidate(candidate(before[left], left));
      if (after[left] != none) push_candidate(candidate(left, after[left]));
    }
    out.erase(
        std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), [](const TokenSpan& token) { return token.id < 0; }),
        out.end());
  }

  BpeOptions options_;
  NumberTable<Merge> merges_;
  StringTable words_;                 // whole words (bytes) that are tokens, for ignore_merges
  int32_t byte_ids_[2][2][256] = {};  // [first of the word][last of the word][byte]: with prefix and suffix
  int32_t fallback_ids_[256] = {};
  int32_t unknown_ = -1;
};

}  // namespace

ModelPointer make_bpe(Vocabulary vocabulary, const Merges& merges, const BpeOptions& options, const std::string& source) {
  check<FileError>(options.unknown.empty() || vocabulary.find(options.unknown) >= 0, source, ": found no ", in_quotes(options.unknown),
                   " in the vocabulary, expected the token of unknown text there");
  return std::make_unique<Bpe>(std::move(vocabulary), merges, options, source);
}

Merges read_merges(const Path& path) {
  const std::string text = read_text(path, kMaxJsonBytes);
  Merges out;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version") || (line.empty() && begin >= text.size())) continue;
    const size_t space = line.find(' ');
    const bool two = space != line.npos && space > 0 && space + 1 < line.size() && line.find(' ', space + 1) == line.npos;
    check<FileError>(two, path.string(), ": line ", number, ": found ", in_quotes(line), ", expected two tokens with one space between");
    out.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return out;
}

}  // namespace heed::text
