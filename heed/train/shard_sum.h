// The sum of the gradients of all shards, in one fixed tree: neighbours are added, then neighbours of those sums, and so on. Each process
// adds what it can of its own shards. Of the rest, every process adds a slice of all parameters and sends it to the others, so what
// travels is as little as in a ring all-reduce, and the bits do not depend on the number of processes.
#pragma once

#include "heed/nn/params.h"
#include "heed/train/shards.h"

namespace heed {

class ShardSum {
 public:
  ShardSum(Group& group, const Shards& shards, const std::vector<Parameter>& parameters);

  void begin_step();
  void begin_shard();  // running statistics of batch norm are again those before the step
  // Takes the gradients of the next shard of this process. share: of the samples of the step, by which running statistics are weighted.
  void add(double share);
  // Parameters that no shard of this process had a gradient for, by number.
  std::vector<size_t> absent() const;
  // The gradients and the running statistics become those of all shards. absent: parameters that have no gradient anywhere
  void finish(const std::vector<size_t>& absent);
  void cancel();  // as before the step

 private:
  struct Node {  // the sum of shards [index << level, (index + 1) << level)
    int level;
    int64_t index;
    Tensor values;  // (all numbers)
  };
  void push(std::vector<Node>& nodes, Node node) const;
  std::vector<Node> nodes_of(int rank) const;  // without values
  Tensor sum_of_all();
  Tensor part(const Tensor& values, size_t i) const;  // numbers of tensor i, in its shape

  Group& group_;
  const Shards shards_;
  Tensors learned_, statistics_;
  std::vector<int64_t> offsets_;  // of learned_, then statistics_, then the end
  std::vector<int64_t> slices_;   // of the processes, and the end
  Tensors before_;                // statistics_ before the step
  std::vector<Node> nodes_;
  std::vector<bool> present_;
  int64_t next_ = 0;
};

}  // namespace heed
