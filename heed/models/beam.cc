#include "heed/models/beam.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/models/finite.h"
#include "heed/models/generate_rules.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr float kLow = -1e9f;  // added to scores to exclude a candidate, as in transformers

struct Beam {
  TokenRow tokens;
  float score = kLow;  // the sum of log-probabilities
  int64_t slot = 0;    // of its keys and values among the beams of its input
};
struct Finished {
  TokenRow tokens;
  float score = kLow;  // the sum divided by length^length_penalty
  bool real = false;   // false: an empty entry
};
struct Continuation {
  float score;
  size_t beam;
  int64_t token;
};

// The indices of the `count` largest scores, the largest first; NaN is the largest. Ties are ordered as in torch.topk, by the same
// standard library algorithms: if all tokens are banned, all scores are equal.
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

// Whether there are ties or NaN, so that the order depends on the algorithm. best: the largest first
bool ambiguous(const std::vector<Continuation>& best) {
  return std::adjacent_find(best.begin(), best.end(), [](const auto& a, const auto& b) { return !(a.score > b.score); }) != best.end();
}

// The best `count`, the best first. rows: V log-probabilities of the next token of each beam
std::vector<Continuation> best_continuations(const std::vector<Beam>& beams, const std::vector<std::span<float>>& rows, size_t count) {
  std::vector<Continuation> best;  // one more than `count`, to detect a tie with the last
  best.reserve(count + 2);
  bool numbers = true;
  for (size_t beam = 0; beam < beams.size(); ++beam) {
    const float before = beams[beam].score;
    for (size_t token = 0; token < rows[beam].size(); ++token) {
      const float score = rows[beam][token] + before;
      numbers = numbers && !std::isnan(score);
      if (best.size() == count + 1 && score <= best.back().score) continue;
      const auto after = std::find_if(best.begin(), best.end(), [&](const Continuation& each) { return score > each.score; });
      best.insert(after, {score, beam, static_cast<int64_t>(token)});
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

// The beams of one input.
class Search {
 public:
  Search(const GenerationOptions& options, const GenerationRules& rules, const TokenRow& prompt)
      : options_(options), rules_(rules), finished_(static_cast<size_t>(options.beams), Finished{.tokens = prompt}) {
    for (int64_t i = 0; i < options.beams; ++i) running_.push_back({.tokens = prompt, .score = i == 0 ? 0 : kLow, .slot = i});
  }

  bool done() const { return !open_ || (options_.early_stopping == EarlyStopping::yes && full()); }
  const std::vector<Beam>& running() const { return running_; }        // the best first
  const std::vector<Finished>& finished() const { return finished_; }  // the best first

  // Adds one token. rows: as above -> for every slot, the slot whose keys and values it continues
  TokenRow advance(const std::vector<std::span<float>>& rows) {
    const size_t beams = running_.size(), count = std::max<size_t>(2, 1 + options_.end.size()) * beams;
    check(rows[0].size() * beams >= count, "generate: ", beams, " beams, expected a vocabulary of more than ", rows[0].size(), " tokens");
    const std::vector<Continuation> best = best_continuations(running_, rows, count);
    const int64_t length = std::ssize(running_[0].tokens) + 1;
    std::vector<bool> ends;
    for (const Continuation& each : best) ends.push_back(length == rules_.max_length() || rules_.ends(each.token));
    add_finished(best, ends, length);
    TokenRow sources = continue_beams(best, ends);
    update_open(length);
    return sources;
  }

 private:
  bool full() const {
    return std::all_of(finished_.begin(), finished_.end(), [](const Finished& each) { return each.real; });
  }
  float over_length(float score, int64_t tokens) const {
    return score / static_cast<float>(std::pow(static_cast<double>(tokens), static_cast<double>(options_.length_penalty)));
  }
  TokenRow extended(const Continuation& each) const {
    TokenRow tokens = running_[each.beam].tokens;
    tokens.push_back(each.token);
    return tokens;
  }

  // Sequences that end within the best K continuations, K the number of beams, compete with those finished before.
  void add_finished(const std::vector<Continuation>& best, const std::vector<bool>& ends, int64_t length) {
    const bool closed = done();
    std::vector<float> scores;
    for (const Finished& each : finished_) scores.push_back(each.score);
    for (size_t i = 0; i < best.size(); ++i) {
      const bool competes = ends[i] && i < running_.size() && !closed;
      scores.push_back(over_length(best[i].score, length - rules_.prompt_length()) + (competes ? 0 : kLow));
    }
    std::vector<Finished> next;
    for (const size_t i : largest(scores, finished_.size())) {
      const size_t j = i - finished_.size();
      if (i < finished_.size()) {
        next.push_back(finished_[i]);
      } else {
        next.push_back({.tokens = extended(best[j]), .score = scores[i], .real = ends[j] && j < running_.size()});
      }
    }
    finished_ = std::move(next);
  }

  // The first beam that continues another keeps its slot, so that only forks copy keys and values.
  TokenRow continue_beams(const std::vector<Continuation>& best, const std::vector<bool>& ends) {
    std::vector<float> scores;
    for (size_t i = 0; i < best.size(); ++i) scores.push_back(best[i].score + (ends[i] ? kLow : 0));
    const std::vector<size_t> order = largest(scores, running_.size());
    std::vector<Beam> next;
    TokenRow sources(running_.size(), -1);
    for (size_t rank = 0; rank < running_.size(); ++rank) {
      const Continuation& chosen = best[order[rank]];
      const int64_t from = running_[chosen.beam].slot;
      int64_t& source = sources[static_cast<size_t>(from)];
      next.push_back({.tokens = extended(chosen), .score = scores[order[rank]], .slot = source < 0 ? from : -1});
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

  // Whether the best beam may still get a better score than the worst finished sequence.
  void update_open(int64_t length) {
    const bool any_length = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
    const float bound = over_length(running_[0].score, (any_length ? rules_.max_length() : length) - rules_.prompt_length());
    float worst = finished_[0].score;
    for (const Finished& each : finished_) worst = std::min(worst, each.score);
    open_ =
        open_ && std::any_of(finished_.begin(), finished_.end(), [&](const Finished& each) { return bound > (each.real ? worst : kLow); });
  }

  const GenerationOptions& options_;
  const GenerationRules& rules_;
  std::vector<Beam> running_;
  std::vector<Finished> finished_;
  bool open_ = true;
};

Beams best_beams_of(const std::vector<Search>& searches, const GenerationOptions& options) {
  // transformers treats a padding token of 0 as none here
  const int64_t fill = options.end.empty() ? -1 : options.pad > 0 ? options.pad : options.end[0];
  Beams out;
  std::vector<TokenRow> rows;
  size_t longest = 0;
  for (const Search& each : searches)
    for (int64_t i = 0; i < options.count; ++i) {
      const Finished& sequence = each.finished()[static_cast<size_t>(i)];
      rows.push_back(sequence.tokens);
      out.scores.push_back(sequence.score);
      longest = std::max(longest, sequence.tokens.size());
    }
  for (TokenRow& row : rows) row.resize(longest, fill);
  out.tokens = tensor_of(rows);
  return out;
}

}  // namespace

Beams beam_search(const Model& model, const TensorMap& inputs, const GenerationOptions& options) {
  const NoGrad no_grad;
  check(!options.sample && !options.choose, "generate: ", options.beams,
        " beams and sampling (do_sample, num_beams), expected one of them");
  check(options.beams >= 1 && options.count >= 1 && options.count <= options.beams, "generate: the best ", options.count, " of ",
        options.beams, " beams, expected at least 1 and at most the number of beams");
  DecodeBatch batch = prefill(model, inputs, options);
  const GenerationRules rules(options, std::ssize(batch.tokens[0]));
  const auto K = static_cast<size_t>(options.beams);
  std::vector<Search> searches;
  for (const TokenRow& prompt : batch.tokens) searches.emplace_back(options, rules, prompt);
  std::vector<size_t> active(searches.size());  // inputs that are not done: K rows of logits each, one in the first step
  std::iota(active.begin(), active.end(), size_t{0});
  std::vector<float> scores;
  Tensor logits = batch.logits;
  for (int64_t length = rules.prompt_length() + 1;; ++length) {
    check_finite(model, logits);
    const bool first = length == rules.prompt_length() + 1;
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
        if (!first || rows.size() == 1) rules.apply(rows.back(), beam.tokens);  // all beams share the prompt's row
      }
      const TokenRow slots = search.advance(rows);
      if (search.done()) continue;
      still.push_back(active[a]);
      for (int64_t slot : slots) sources.push_back(static_cast<int64_t>(first ? a : a * K + static_cast<size_t>(slot)));
      next.resize(sources.size());
      for (const Beam& beam : search.running()) next[next.size() - K + static_cast<size_t>(beam.slot)] = beam.tokens.back();
    }
    if (length == rules.max_length() || still.empty()) break;
    // Beams of one input share the encoder's output and the padding: only their caches differ. Recurrent networks have states instead.
    if (first || still.size() < active.size() || batch.state.past.empty()) {
      batch.state.reorder(sources);
    } else {
      batch.state.reorder_past(sources);
    }
    active = std::move(still);
    logits = model.decoder().step(batch.state, Tensor::from(next, {std::ssize(next), 1}, kCpu));
  }
  return best_beams_of(searches, options);
}

}  // namespace heed
