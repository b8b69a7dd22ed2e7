#include "heed/models/sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "heed/core/random.h"

namespace heed {
namespace {

struct Candidate {
  float score;
  int32_t token;
  double weight;  // e^(score - best): the unnormalized probability

  bool operator<(const Candidate& other) const { return score < other.score || (score == other.score && token < other.token); }
};
using Candidates = std::vector<Candidate>;

// For small k, a heap of the k best so far: few scores of a long row enter it.
float kth_largest(std::span<const float> scores, int64_t k) {
  constexpr int64_t small = 200;
  std::vector<float> best(scores.begin(), scores.begin() + (k > small ? std::ssize(scores) : k));
  if (k > small) {
    std::nth_element(best.begin(), best.begin() + k - 1, best.end(), std::greater<>());
    return best[static_cast<size_t>(k - 1)];
  }
  std::make_heap(best.begin(), best.end(), std::greater<>());
  for (const float score : scores.subspan(static_cast<size_t>(k)))
    if (score > best.front()) {
      std::pop_heap(best.begin(), best.end(), std::greater<>());
      best.back() = score;
      std::push_heap(best.begin(), best.end(), std::greater<>());
    }
  return best.front();
}

// The tokens that can be drawn, in order of their ids.
Candidates candidates_of(std::span<const float> scores, int64_t top_k) {
  const float best = *std::max_element(scores.begin(), scores.end());
  check(std::isfinite(best), "generate: the largest score is ", best, ", expected a number");
  const bool some = top_k > 0 && top_k < std::ssize(scores);
  const float least = some ? kth_largest(scores, top_k) : std::numeric_limits<float>::lowest();
  Candidates out;
  out.reserve(some ? static_cast<size_t>(top_k) : scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] >= least && std::isfinite(scores[i]))
      out.push_back({scores[i], static_cast<int32_t>(i), static_cast<double>(std::exp(scores[i] - best))});
  return out;
}

// Drops the least likely tokens as long as their total probability is at most 1 - top_p; of equal ones, smaller ids first. A
// histogram of scores finds the bucket with the limit, so that only this bucket is sorted and not the vocabulary.
void apply_top_p(Candidates& all, float top_p) {
  constexpr size_t buckets = 1024;
  constexpr float reach = 40;  // e^-40: lower scores have no weight
  const auto [lowest, best] = std::minmax_element(all.begin(), all.end());
  const Candidate likeliest = *best;
  const float least = std::max(lowest->score, likeliest.score - reach);
  const float scale = likeliest.score > least ? static_cast<float>(buckets) / (likeliest.score - least) : 0;
  const auto bucket = [&](const Candidate& each) {
    return std::min(buckets - 1, static_cast<size_t>(std::max(0.0f, (each.score - least) * scale)));
  };
  std::array<double, buckets> weights{};
  for (const Candidate& each : all) weights[bucket(each)] += each.weight;
  const double most = (1 - static_cast<double>(top_p)) * std::accumulate(weights.begin(), weights.end(), 0.0);
  double dropped = 0;
  size_t last = 0;
  for (; last < buckets && dropped + weights[last] <= most; ++last) dropped += weights[last];
  Candidates open;
  std::copy_if(all.begin(), all.end(), std::back_inserter(open), [&](const Candidate& each) { return bucket(each) == last; });
  std::sort(open.begin(), open.end());
  Candidate first = open.empty() ? likeliest : open.back();
  for (const Candidate& each : open) {
    dropped += each.weight;
    if (dropped <= most) continue;
    first = each;
    break;
  }
  std::erase_if(all, [&](const Candidate& each) { return each < first; });
}

int64_t draw(const Candidates& all, const std::array<uint32_t, 4>& words) {
  double total = 0;
  for (const Candidate& each : all) total += each.weight;
  const uint64_t bits = uint64_t{words[0]} << 32 | words[1];
  double left = static_cast<double>(bits >> 11) * 0x1p-53 * total;  // in [0, total)
  for (const Candidate& each : all) {
    left -= each.weight;
    if (left < 0) return each.token;
  }
  return std::max_element(all.begin(), all.end())->token;  // rounding error
}

}  // namespace

int64_t choose_best(std::span<float> scores, int64_t, int64_t) { return std::max_element(scores.begin(), scores.end()) - scores.begin(); }

void check_sampling(const Sampling& sampling) {
  check(sampling.temperature > 0 && std::isfinite(sampling.temperature), "sample: a temperature of ", sampling.temperature,
        ", expected one above 0");
  check(sampling.top_k >= 0, "sample: a top_k of ", sampling.top_k, ", expected 0 or more");
  check(sampling.top_p >= 0 && sampling.top_p <= 1, "sample: a top_p of ", sampling.top_p, ", expected one from 0 to 1");
  check(sampling.min_p >= 0 && sampling.min_p <= 1, "sample: a min_p of ", sampling.min_p, ", expected one from 0 to 1");
}

Chooser make_sampler(const Sampling& sampling) {
  check_sampling(sampling);
  return [sampling](std::span<float> scores, int64_t sequence, int64_t step) {
    if (sampling.temperature != 1)
      for (float& score : scores) score /= sampling.temperature;
    Candidates all = candidates_of(scores, sampling.top_k);
    if (sampling.top_p < 1) apply_top_p(all, sampling.top_p);
    if (sampling.min_p > 0) std::erase_if(all, [&](const Candidate& each) { return each.weight < static_cast<double>(sampling.min_p); });
    return draw(all, philox({sampling.seed, static_cast<uint64_t>(sequence)}, static_cast<uint64_t>(step)));
  };
}

}  // namespace heed
