// Choosing the next token of a text: the likeliest, or one by chance.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace heed {

// Which token comes next. scores: V numbers, -infinity where a rule forbids a token; a chooser may change them. text: its
// number in the batch. place: how many tokens were written before.
using Chooser = std::function<int64_t(std::span<float> scores, int64_t text, int64_t place)>;

int64_t choose_best(std::span<float> scores, int64_t text, int64_t place);  // the first of equal ones

// How chance chooses, in the order in which the steps are taken. The values that change nothing: 1, 0, 1, 0.
struct Sampling {
  float temperature = 1;  // scores are divided by it
  int64_t top_k = 50;     // only so many of the likeliest, and those as likely as the last of them; 0: all (Fan et al. 2018)
  float top_p = 1;        // only the likeliest that together reach this probability (Holtzman et al. 2020)
  float min_p = 0;        // only those at least so likely beside the likeliest (Nguyen et al. 2024)
  uint64_t seed = 1;
};

// Draw number `place` of a text depends on the seed, the text's number and its own scores alone.
Chooser choose_by_chance(const Sampling& how);

}  // namespace heed
