// The sums of the gradients of all shards, in one fixed tree (shard_tree.h). Gradients are sent in buckets, those of the last layers first:
// a thread exchanges them while backward computes the others. Processes send as many bytes as in a ring all-reduce, and the result is
// bit-identical for any number of processes and any bucket size.
#pragma once

#include <memory>
#include <optional>

#include "heed/dist/task_thread.h"
#include "heed/nn/params.h"
#include "heed/train/shard_tree.h"

namespace heed {

class ShardSum {
 public:
  ShardSum(Group& group, const Shards& shards, const std::vector<Parameter>& parameters);

  const Tensors& learned() const { return learned_; }
  void begin_step();
  void begin_shard();
  // Called during backward of the last shard of this process when the gradient of learned()[i] is final. Sends complete buckets.
  void complete(size_t i);
  void add();  // takes the remaining gradients of the current shard
  // Indices of the parameters that had no gradient in any shard of this process.
  std::vector<size_t> absent() const;
  // The gradients become those of all shards. absent: parameters that have no gradient anywhere
  void finish(const std::vector<size_t>& absent);
  // Discards the gradients of this step. give_up: called in one process, which sends zeros to the others. cancel: called in all processes
  void give_up();
  void cancel();

 private:
  struct Bucket {
    std::vector<size_t> parameters = {};  // of learned_
    std::vector<int64_t> offsets = {};    // of them in the bucket
    int64_t count = 0;                    // numbers
    size_t missing = 0;                   // gradients that are not complete
    ShardNodes nodes = {};
    std::shared_ptr<Tensor> sum = {};  // of all shards, when it has arrived
  };
  // Whether GPUs exchange gradients directly, in stream order.
  bool is_connected() const { return group_.connects(learned_.at(0).device()); }
  void take(Bucket& bucket);
  void send(Bucket& bucket);
  Tensor part(const Tensor& values, const Bucket& bucket, size_t i) const;  // the numbers of its parameter i, in the shape of that

  Group& group_;
  const Shards shards_;
  const std::shared_ptr<const ShardTree> tree_;
  Tensors learned_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // of a parameter
  std::vector<bool> present_;
  size_t taken_ = 0, sent_ = 0;  // buckets of this shard and of this step
  int64_t next_ = 0;             // shard
  std::optional<TaskThread> thread_;
};

}  // namespace heed
