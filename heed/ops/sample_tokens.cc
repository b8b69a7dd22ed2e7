#include "heed/ops/sample_tokens.h"

#include <algorithm>
#include <vector>

#include "heed/core/raw.h"

namespace heed {
namespace {

struct WeighedToken {
  float score;
  int64_t token;
  uint64_t weight;
};

// The tokens that can be drawn, in order of their ids; empty if a score is not finite, for example after a division by 1e-40.
std::vector<WeighedToken> kept_tokens(const AppendSampledTokens& p, const float* row) {
  std::vector<WeighedToken> all;
  for (int64_t i = 0; i < p.V; ++i) {
    all.push_back({row[i] / p.temperature, i, 0});
    if (!std::isfinite(all.back().score)) return {};
  }
  const auto less = [](const WeighedToken& a, const WeighedToken& b) {
    return a.score < b.score || (a.score == b.score && a.token < b.token);
  };
  std::sort(all.begin(), all.end(), less);
  const float best = all.back().score;
  if (p.top_k > 0 && p.top_k < p.V) {
    const float least = all[static_cast<size_t>(p.V - p.top_k)].score;
    std::erase_if(all, [&](const WeighedToken& each) { return each.score < least; });
  }
  uint64_t total = 0;
  for (WeighedToken& each : all) total += each.weight = AppendSampledTokens::weight_of(each.score - best);
  if (p.top_p < 1) {
    const uint64_t most = p.dropped_weight(total);
    uint64_t dropped = 0;
    size_t first = 0;
    while (dropped + all[first].weight <= most) dropped += all[first++].weight;
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
  }
  std::erase_if(all, [&](const WeighedToken& each) { return std::exp(each.score - best) < p.min_p; });
  std::sort(all.begin(), all.end(), [](const WeighedToken& a, const WeighedToken& b) { return a.token < b.token; });
  return all;
}

}  // namespace

void append_sampled_tokens(const Tensor& logits, const SampleOptions& options, const WrittenTokens& written) {
  const Device device = device_of_written("append_sampled_tokens", logits, written);
  launch(append_sampled, device,
         {.logits = raw<float>(logits),
          .last = raw<int64_t>(written.last),
          .lengths = raw<int64_t>(written.lengths),
          .all = raw<int64_t>(written.all),
          .B = logits.size(0),
          .V = logits.size(1),
          .capacity = written.all.size(1),
          .temperature = options.temperature,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .top_k = options.top_k,
          .first = options.first,
          .seed = options.seed});
}

void cpu::append_sampled(const AppendSampledTokens& p) {
  for (int64_t b = 0; b < p.B; ++b) {
    const std::vector<WeighedToken> all = kept_tokens(p, p.logits + b * p.V);
    const int64_t length = ++p.lengths[b];
    check(0 <= length && length < p.capacity, "append_sampled_tokens: position ", length, ", there is room for ", p.capacity, " tokens");
    uint64_t total = 0;
    for (const WeighedToken& each : all) total += each.weight;
    uint64_t left = AppendSampledTokens::share_of(total, p.random_bits(b, length));  // below the total
    p.last[b] = -1;
    for (const WeighedToken& each : all) {
      if (left < each.weight) {
        p.last[b] = each.token;
        break;
      }
      left -= each.weight;
    }
    p.all[b * p.capacity + length] = p.last[b];
  }
}

}  // namespace heed
