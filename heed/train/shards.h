// Every batch is cut into a number of shards that does not depend on the number of processes, so that sums over a batch always have the
// same order.
#pragma once

#include <span>

#include "heed/dist/group.h"
#include "heed/train/batch_order.h"
#include "heed/train/train_options.h"

namespace heed {

struct Shards {
  int64_t count = 1;           // in all processes
  int64_t begin = 0, end = 1;  // those of this process
  bool fixed_tree = true;      // false: the processes add their gradients in any order

  bool is_split() const { return count > 1; }
  // Samples of a shard: [first, last) of a batch. The first shards of a small batch are filled first.
  std::span<const int64_t> of(std::span<const int64_t> batch, int64_t shard) const;
  // The batches that this process loads, without empty ones: for each step its shards in order, and for each shard its part of the
  // `accumulate` batches of the step.
  Batches own_batches(std::span<const std::vector<int64_t>> batches, int64_t accumulate) const;
};

// The shards of a process: of `count` in all, contiguous.
std::pair<int64_t, int64_t> shard_range(int64_t count, int rank, int size);

// shards=auto: 1 in one process, else 8, or the next power of two if there are more processes. UsageError if there are fewer shards than
// processes.
std::string automatic_shards(const Group& group);
Shards shards_of(const TrainOptions& options, const Group& group);

}  // namespace heed
