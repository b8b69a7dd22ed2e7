// The order of samples in an epoch and the train/validation split. Both depend only on seeds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/random.h"

namespace heed {

using Batches = std::vector<std::vector<int64_t>>;  // indices of samples

// Seeds the augmentation or masking of one sample in one epoch.
RandomKey sample_key(uint64_t seed, int64_t epoch, int64_t sample);

// All samples shuffled; the last batch may be smaller.
Batches shuffled_batches(int64_t count, int64_t batch, uint64_t seed, int64_t epoch);
// Shuffled, with samples of similar length in one batch to save padding: sorts by length within groups of 100 batches, then shuffles the
// batches.
Batches length_bucketed_batches(std::span<const int64_t> lengths, int64_t batch, uint64_t seed, int64_t epoch);
Batches batches_in_order(int64_t count, int64_t batch);

struct Split {
  std::vector<int64_t> kept, held_out;  // both sorted
};
// share: fraction to hold out; at least one sample unless it is 0
Split split(int64_t count, double share, uint64_t seed);

}  // namespace heed
