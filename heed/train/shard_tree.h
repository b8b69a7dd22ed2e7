// The fixed binary tree in which the gradients of shards are added: neighbours, then neighbours of those sums, and so on.
#pragma once

#include "heed/train/shards.h"

namespace heed {

struct ShardNode {  // the sum of shards [index << level, (index + 1) << level)
  int level;
  int64_t index;
  Tensor values;
};
using ShardNodes = std::vector<ShardNode>;  // from the first shards to the last

class ShardTree {
 public:
  ShardTree(Shards shards, int processes) : shards_(shards), processes_(processes) {}

  // Adds the node to its neighbour if that is there, and so on upwards. A node without a neighbour is its own sum.
  void push(ShardNodes& nodes, ShardNode node) const;
  ShardNodes nodes_of(int rank) const;  // the nodes that the shards of a process add up to, without values
  // own: the nodes of this process, dense f32 rows of one length -> the sum of all shards, in every process. Each process adds
  // a slice of the numbers, and sends it to the others.
  Tensor sum_of_all(Group& group, Tensors own) const;

 private:
  const Shards shards_;
  const int processes_;
};

}  // namespace heed
