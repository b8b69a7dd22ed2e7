// Choosing the next token: greedily or by sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "heed/core/api.h"

namespace HEED_API heed {

// Returns the next token. scores: V numbers, -infinity for forbidden tokens; may be changed. sequence: its index in the batch.
// step: the number of tokens generated before.
using Chooser = std::function<int64_t(std::span<float> scores, int64_t sequence, int64_t step)>;

int64_t choose_best(std::span<float> scores, int64_t sequence, int64_t step);  // argmax, the first of equal scores

// The filters are applied in this order. 1, 0, 1, 0 disable them.
struct Sampling {
  float temperature = 1;  // scores are divided by it
  int64_t top_k = 50;     // keep the k most likely tokens, and ties with the last of them; 0: all (Fan et al. 2018)
  float top_p = 1;        // keep the most likely tokens that together reach this probability (Holtzman et al. 2020)
  float min_p = 0;        // keep tokens with at least this share of the largest probability (Nguyen et al. 2024)
  uint64_t seed = 1;
};

void check_sampling(const Sampling& sampling);  // an error if a number is out of range

// Draws depend only on the seed, the index of the sequence, the step and the scores.
Chooser make_sampler(const Sampling& sampling);

}  // namespace heed
