// Taps form a list, the newest first; every call of attention goes to all of them.
#include "heed/attention/tap.h"

#include <algorithm>

#include "heed/attention/probabilities.h"

namespace heed {

AttentionTap::AttentionTap(Choice choice) : choice_(std::move(choice)), outer_(newest_) { newest_ = this; }
AttentionTap::~AttentionTap() { newest_ = outer_; }

void AttentionTap::look(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  for (AttentionTap* tap = newest_; tap; tap = tap->outer_) {
    const int64_t call = tap->calls_++;
    tap->shapes_.push_back({q.shape(), k.shape()});
    if (tap->choice_.operands) tap->operands_.push_back({q, k, options});
    const std::vector<int64_t>& calls = tap->choice_.calls;
    if (!calls.empty() && std::find(calls.begin(), calls.end(), call) == calls.end()) continue;
    tap->looks_.push_back({call, attention_probabilities(q, k, options, tap->choice_.heads, tap->choice_.rows)});
  }
}

}  // namespace heed
