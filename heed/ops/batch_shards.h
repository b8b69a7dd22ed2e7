// Batches that are cut into shards, whose forward and backward passes run side by side, in one process or several.
#pragma once

#include <cstddef>
#include <vector>

#include "heed/core/api.h"

namespace HEED_API heed {

class BatchShards {
 public:
  virtual ~BatchShards() = default;
  // Waits until every shard has called it, with equally many numbers. Returns those of all shards, in order.
  virtual std::vector<std::vector<double>> all_of(const std::vector<double>& own) = 0;
  virtual size_t place() const = 0;        // of this shard among those that the last all_of() returned
  virtual bool is_first_here() const = 0;  // of the shards of this process
};

// While one of these lives, what this thread computes is a shard of a batch: batch norm in training uses the statistics of all shards, in
// backward too.
class ShardScope {
 public:
  explicit ShardScope(BatchShards* shards);  // null: the batch is whole
  ~ShardScope();
  ShardScope(const ShardScope&) = delete;
  ShardScope& operator=(const ShardScope&) = delete;

  static BatchShards* newest();  // null: none

 private:
  BatchShards* const before_;
};

}  // namespace heed
