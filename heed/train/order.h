// In which order samples are learned from, and which are kept out: functions of seeds alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/random.h"

namespace heed {

using Batches = std::vector<std::vector<int64_t>>;  // places of samples

// Random numbers of one sample in one epoch.
RandomKey sample_key(uint64_t seed, int64_t epoch, int64_t sample);

// All samples shuffled; the last batch may be smaller.
Batches shuffled_batches(int64_t count, int64_t batch, uint64_t seed, int64_t epoch);
// The same with samples of like length together, so that little is padding: among some hundred batches' worth that came together
// by chance they are sorted, and the batches shuffled again.
Batches batches_of_like_length(std::span<const int64_t> lengths, int64_t batch, uint64_t seed, int64_t epoch);
Batches batches_in_order(int64_t count, int64_t batch);

struct Split {
  std::vector<int64_t> kept, held_out;  // both in rising order
};
// share: of what is held out, at least one sample unless it is 0
Split split(int64_t count, double share, uint64_t seed);

}  // namespace heed
