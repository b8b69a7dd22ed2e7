// BPE training. Pair counts are updated incrementally, so a merge only visits the words that contain the pair.
#include <algorithm>
#include <queue>

#include "heed/text/number_table.h"
#include "heed/text/train_vocabulary.h"

namespace heed::text {
namespace {

struct Pair {
  int32_t a, b;
  uint64_t key() const { return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b); }
};

struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair.key() > other.pair.key(); }
};

class MergeTrainer {
 public:
  MergeTrainer(const std::vector<CountedWord>& words, std::vector<std::string> tokens, std::string prefix)
      : prefix_(std::move(prefix)), words_(words), symbols_(words.size()) {
    for (std::string& token : tokens) id_of(std::move(token));
    const size_t known = tokens_.size();
    for (size_t w = 0; w < words.size(); ++w) {
      const std::string_view word = words[w].text;
      for (size_t i = 0, next = 0; i < word.size(); i = next) {
        next = i + char_bytes(word[i]);
        const std::string_view c = word.substr(i, next - i);
        const int32_t plain = table_.find(c);
        if (plain >= 0 && plain < static_cast<int32_t>(known))
          symbols_[w].push_back(i > 0 && !prefix_.empty() ? id_of(prefix_ + std::string(c)) : plain);
      }
      for (size_t i = 0; i + 1 < symbols_[w].size(); ++i) change({symbols_[w][i], symbols_[w][i + 1]}, 1, w);
    }
    offer_changed();
  }

  TrainedMerges train(int64_t size, int64_t min_count) {
    TrainedMerges out;
    while (std::ssize(tokens_) < size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t current = stats_[index_[best.pair.key()]].count;
      if (current != best.count) {  // outdated: earlier merges changed the count
        if (current > 0) queue_.push({current, best.pair});
        continue;
      }
      if (best.count < std::max<int64_t>(min_count, 1)) break;
      const std::string &left = tokens_[static_cast<size_t>(best.pair.a)], &right = tokens_[static_cast<size_t>(best.pair.b)];
      out.merges.emplace_back(left, right);
      merge(best.pair, id_of(left + (right.starts_with(prefix_) ? right.substr(prefix_.size()) : right)));
    }
    out.tokens = std::move(tokens_);
    return out;
  }

 private:
  struct PairStats {
    int64_t count = 0;
    std::vector<uint32_t> words;  // that contain the pair, or did
    bool changed = false;
  };

  int32_t id_of(std::string token) {
    const int32_t known = table_.find(token);
    if (known >= 0) return known;
    const auto id = static_cast<int32_t>(tokens_.size());
    table_.insert(token, id);
    tokens_.push_back(std::move(token));
    return id;
  }

  void change(Pair pair, int sign, size_t word) {
    uint32_t& index = index_[pair.key()];
    if (index == 0) {
      index = static_cast<uint32_t>(stats_.size());
      stats_.emplace_back();
    }
    PairStats& places = stats_[index];
    places.count += sign * words_[word].count;
    if (sign < 0) return;
    const auto w = static_cast<uint32_t>(word);
    if (places.words.empty() || places.words.back() != w) places.words.push_back(w);
    if (!places.changed) changed_.push_back(pair);
    places.changed = true;
  }

  void offer_changed() {
    for (const Pair pair : changed_) {
      PairStats& places = stats_[index_[pair.key()]];
      places.changed = false;
      if (places.count > 0) queue_.push({places.count, pair});
    }
    changed_.clear();
  }

  void merge(Pair pair, int32_t id) {
    const std::vector<uint32_t> places = std::move(stats_[index_[pair.key()]].words);
    stats_[index_[pair.key()]].words.clear();
    for (const uint32_t w : places) {
      std::vector<int32_t>& word = symbols_[w];
      size_t length = 0;
      for (size_t i = 0; i < word.size(); ++length) {
        if (i + 1 >= word.size() || word[i] != pair.a || word[i + 1] != pair.b) {
          word[length] = word[i++];
          continue;
        }
        if (length > 0) {
          change({word[length - 1], pair.a}, -1, w);
          change({word[length - 1], id}, 1, w);
        }
        if (i + 2 < word.size()) {
          change({pair.b, word[i + 2]}, -1, w);
          change({id, word[i + 2]}, 1, w);
        }
        word[length] = id;
        i += 2;
      }
      word.resize(length);
    }
    offer_changed();
  }

  std::string prefix_;
  const std::vector<CountedWord>& words_;
  std::vector<std::vector<int32_t>> symbols_;  // of each word
  std::vector<std::string> tokens_;
  StringTable table_;
  NumberTable<uint32_t> index_;                               // of a pair in stats_; 0: none
  std::vector<PairStats> stats_ = std::vector<PairStats>(1);  // entry 0 is unused
  std::vector<Pair> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

TrainedMerges train_merges(const std::vector<CountedWord>& words, std::vector<std::string> tokens, const std::string& prefix, int64_t size,
                           int64_t min_count) {
  return MergeTrainer(words, std::move(tokens), prefix).train(size, min_count);
}

}  // namespace heed::text
