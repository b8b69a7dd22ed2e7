#include "heed/models/beam.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/models/finite.h"
#include "heed/models/generate_rules.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr float kLow = -1e9f;  // what takes a beam out of the competition

struct Beam {
  TokenRow tokens;
  float score = kLow;  // the sum of log-probabilities
  int64_t slot = 0;    // where its keys and values are, among those of its text's beams
};
struct Ended {
  TokenRow tokens;
  float score = kLow;  // the same over the length
  bool real = false;   // false: nothing has ended here yet
};
struct Continuation {
  float score;
  size_t beam;
  int64_t token;
};

// The places of the `count` largest scores, the largest first; NaN counts as the largest. Which of equal scores come first is decided as
// in torch.topk, by the standard library's algorithms: where every token is banned, all that is left to choose from is equal.
std::vector<size_t> largest(const std::vector<float>& scores, size_t count) {
  using Scored = std::pair<float, size_t>;
  std::vector<Scored> all;
  all.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) all.emplace_back(scores[i], i);
  const auto before = [](const Scored& a, const Scored& b) { return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first; };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
  if (count * 64 <= all.size()) {
    std::partial_sort(all.begin(), end, all.end(), before);
  } else {
    std::nth_element(all.begin(), end - 1, all.end(), before);
    std::sort(all.begin(), end - 1, before);
  }
  std::vector<size_t> out;
  for (auto each = all.begin(); each != end; ++each) out.push_back(each->second);
  return out;
}

// Whether the order of these is a matter of taste. best: the largest first
bool ambiguous(const std::vector<Continuation>& best) {
  return std::adjacent_find(best.begin(), best.end(), [](const auto& a, const auto& b) { return !(a.score > b.score); }) != best.end();
}

// The best `count`, the best first. rows: V log-probabilities of what may follow each beam
std::vector<Continuation> best_continuations(const std::vector<Beam>& beams, const std::vector<std::span<float>>& rows, size_t count) {
  std::vector<Continuation> best;  // one more than asked for, to see whether it is as good as the last of them
  best.reserve(count + 2);
  bool numbers = true;
  for (size_t beam = 0; beam < beams.size(); ++beam) {
    const float before = beams[beam].score;
    for (size_t token = 0; token < rows[beam].size(); ++token) {
      const float score = rows[beam][token] + before;
      numbers = numbers && !std::isnan(score);
      if (best.size() == count + 1 && score <= best.back().score) continue;
      const auto behind = std::find_if(best.begin(), best.end(), [&](const Continuation& each) { return score > each.score; });
      best.insert(behind, {score, beam, static_cast<int64_t>(token)});
      if (best.size() > count + 1) best.pop_back();
    }
  }
  if (numbers && !ambiguous(best)) {
    best.resize(std::min(best.size(), count));
    return best;
  }
  const size_t V = rows[0].size();
  std::vector<float> scores;
  for (size_t beam = 0; beam < beams.size(); ++beam)
    for (const float score : rows[beam]) scores.push_back(score + beams[beam].score);
  best.clear();
  for (const size_t i : largest(scores, count)) best.push_back({scores[i], i / V, static_cast<int64_t>(i % V)});
  return best;
}

// The beams of one text.
class Search {
 public:
  Search(const GenerationOptions& options, const GenerationRules& rules, const TokenRow& text)
      : options_(options), rules_(rules), ended_(static_cast<size_t>(options.beams), Ended{.tokens = text}) {
    for (int64_t i = 0; i < options.beams; ++i) running_.push_back({.tokens = text, .score = i == 0 ? 0 : kLow, .slot = i});
  }

  bool done() const { return !open_ || (options_.early_stopping == EarlyStopping::yes && full()); }
  const std::vector<Beam>& running() const { return running_; }  // the best first
  const std::vector<Ended>& ended() const { return ended_; }     // likewise

  // One token more. rows: as above -> for every slot the slot whose keys and values it goes on from
  TokenRow advance(const std::vector<std::span<float>>& rows) {
    const size_t beams = running_.size(), count = std::max<size_t>(2, 1 + options_.end.size()) * beams;
    check(rows[0].size() * beams >= count, "generate: ", beams, " beams, expected a vocabulary of more than ", rows[0].size(), " tokens");
    const std::vector<Continuation> best = best_continuations(running_, rows, count);
    const int64_t length = std::ssize(running_[0].tokens) + 1;
    std::vector<bool> ends;
    for (const Continuation& each : best) ends.push_back(length == rules_.longest() || rules_.ends(each.token));
    end_some(best, ends, length);
    TokenRow sources = go_on(best, ends);
    judge(length);
    return sources;
  }

 private:
  bool full() const {
    return std::all_of(ended_.begin(), ended_.end(), [](const Ended& each) { return each.real; });
  }
  float over_length(float score, int64_t tokens) const {
    return score / static_cast<float>(std::pow(static_cast<double>(tokens), static_cast<double>(options_.length_penalty)));
  }
  TokenRow written(const Continuation& each) const {
    TokenRow tokens = running_[each.beam].tokens;
    tokens.push_back(each.token);
    return tokens;
  }

  // Of the texts that end, those among the best as many as there are beams compete with what has ended before.
  void end_some(const std::vector<Continuation>& best, const std::vector<bool>& ends, int64_t length) {
    const bool closed = done();
    std::vector<float> scores;
    for (const Ended& each : ended_) scores.push_back(each.score);
    for (size_t i = 0; i < best.size(); ++i) {
      const bool competes = ends[i] && i < running_.size() && !closed;
      scores.push_back(over_length(best[i].score, length - rules_.began()) + (competes ? 0 : kLow));
    }
    std::vector<Ended> next;
    for (const size_t i : largest(scores, ended_.size())) {
      const size_t j = i - ended_.size();
      if (i < ended_.size()) {
        next.push_back(ended_[i]);
      } else {
        next.push_back({.tokens = written(best[j]), .score = scores[i], .real = ends[j] && j < running_.size()});
      }
    }
    ended_ = std::move(next);
  }

  // The first beam that goes on from another keeps its slot, so that only forks move keys and values.
  TokenRow go_on(const std::vector<Continuation>& best, const std::vector<bool>& ends) {
    std::vector<float> scores;
    for (size_t i = 0; i < best.size(); ++i) scores.push_back(best[i].score + (ends[i] ? kLow : 0));
    const std::vector<size_t> order = largest(scores, running_.size());
    std::vector<Beam> next;
    TokenRow sources(running_.size(), -1);
    for (size_t rank = 0; rank < running_.size(); ++rank) {
      const Continuation& chosen = best[order[rank]];
      const int64_t from = running_[chosen.beam].slot;
      int64_t& source = sources[static_cast<size_t>(from)];
      next.push_back({.tokens = written(chosen), .score = scores[order[rank]], .slot = source < 0 ? from : -1});
      source = from;
    }
    for (size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank].slot >= 0) continue;
      next[rank].slot = std::find(sources.begin(), sources.end(), -1) - sources.begin();
      sources[static_cast<size_t>(next[rank].slot)] = running_[best[order[rank]].beam].slot;
    }
    running_ = std::move(next);
    return sources;
  }

  // Whether the best beam may still end better than the worst that has ended.
  void judge(int64_t length) {
    const bool far = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
    const float hope = over_length(running_[0].score, (far ? rules_.longest() : length) - rules_.began());
    float worst = ended_[0].score;
    for (const Ended& each : ended_) worst = std::min(worst, each.score);
    open_ = open_ && std::any_of(ended_.begin(), ended_.end(), [&](const Ended& each) { return hope > (each.real ? worst : kLow); });
  }

  const GenerationOptions& options_;
  const GenerationRules& rules_;
  std::vector<Beam> running_;
  std::vector<Ended> ended_;
  bool open_ = true;
};

Beams best_of(const std::vector<Search>& searches, const GenerationOptions& options) {
  // transformers takes the padding token 0 for none here
  const int64_t fill = options.end.empty() ? -1 : options.pad > 0 ? options.pad : options.end[0];
  Beams out;
  std::vector<TokenRow> rows;
  size_t longest = 0;
  for (const Search& each : searches)
    for (int64_t i = 0; i < options.count; ++i) {
      const Ended& text = each.ended()[static_cast<size_t>(i)];
      rows.push_back(text.tokens);
      out.scores.push_back(text.score);
      longest = std::max(longest, text.tokens.size());
    }
  for (TokenRow& row : rows) row.resize(longest, fill);
  out.tokens = tensor_of(rows);
  return out;
}

}  // namespace

Beams beam_search(const Model& model, const Named& inputs, const GenerationOptions& options) {
  const NoGrad quiet;
  check(!options.sample && !options.choose, "generate: ", options.beams,
        " beams and sampling (do_sample, num_beams), expected one of them");
  check(options.beams >= 1 && options.count >= 1 && options.count <= options.beams, "generate: the best ", options.count, " of ",
        options.beams, " beams, expected 1 or more, and no more than there are beams");
  BegunTexts begun = begin_texts(model, inputs, options);
  const GenerationRules rules(options, std::ssize(begun.tokens[0]));
  const auto K = static_cast<size_t>(options.beams);
  std::vector<Search> searches;
  for (const TokenRow& text : begun.tokens) searches.emplace_back(options, rules, text);
  std::vector<size_t> active(searches.size());  // the texts whose beams go on: rows of logits, K each, once the first step is done
  std::iota(active.begin(), active.end(), size_t{0});
  std::vector<float> scores;
  Tensor logits = begun.logits;
  for (int64_t length = rules.began() + 1;; ++length) {
    check_finite(model, logits);
    const bool first = length == rules.began() + 1;
    const auto V = static_cast<size_t>(logits.size(1));
    scores.resize(static_cast<size_t>(logits.count()));
    log_softmax(logits).copy_to_host(std::as_writable_bytes(std::span(scores)), DType::f32);
    TokenRow sources, next;
    std::vector<size_t> still;
    for (size_t a = 0; a < active.size(); ++a) {
      Search& search = searches[active[a]];
      std::vector<std::span<float>> rows;
      for (const Beam& beam : search.running()) {
        const size_t row = first ? a : a * K + static_cast<size_t>(beam.slot);
        rows.push_back(std::span(scores).subspan(row * V, V));
        if (!first || rows.size() == 1) rules.apply(rows.back(), beam.tokens);  // all begin alike
      }
      const TokenRow slots = search.advance(rows);
      if (search.done()) continue;
      still.push_back(active[a]);
      for (int64_t slot : slots) sources.push_back(static_cast<int64_t>(first ? a : a * K + static_cast<size_t>(slot)));
      next.resize(sources.size());
      for (const Beam& beam : search.running()) next[next.size() - K + static_cast<size_t>(beam.slot)] = beam.tokens.back();
    }
    if (length == rules.longest() || still.empty()) break;
    // Beams of one text have the encoder's output and the padding in common: only what they wrote moves.
    if (first || still.size() < active.size()) {
      begun.writing.reorder(sources);
    } else {
      begun.writing.reorder_past(sources);
    }
    active = std::move(still);
    logits = model.decoder().step(begun.writing, Tensor::from(next, {std::ssize(next), 1}));
  }
  return best_of(searches, options);
}

}  // namespace heed
