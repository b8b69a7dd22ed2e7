#include "heed/train/shard_tree.h"

#include "heed/core/copy.h"

namespace heed {

void ShardTree::push(ShardNodes& nodes, ShardNode node) const {
  while ((int64_t{1} << node.level) < shards_.count) {
    const bool is_right = node.index % 2 == 1, is_last = ((node.index + 1) << node.level) >= shards_.count;
    if (is_right) {
      if (nodes.empty() || nodes.back().level != node.level || nodes.back().index != node.index - 1) break;
      ShardNode left = std::move(nodes.back());
      nodes.pop_back();
      if (node.values.defined()) accumulate(left.values, node.values);
      node.values = std::move(left.values);
    } else if (!is_last) {
      break;
    }
    ++node.level;
    node.index /= 2;
  }
  nodes.push_back(std::move(node));
}

ShardNodes ShardTree::nodes_of(int rank) const {
  ShardNodes nodes;
  const auto [begin, end] = shard_range(shards_.count, rank, processes_);
  for (int64_t shard = begin; shard < end; ++shard) push(nodes, {.level = 0, .index = shard, .values = {}});
  return nodes;
}

Tensor ShardTree::sum_of_all(Group& group, Tensors own) const {
  const Tensor first = own.at(0);
  if (processes_ == 1) return first;
  if (!shards_.fixed_tree) {
    group.all_reduce(first);
    return first;
  }
  std::vector<int64_t> slices, nodes_from;
  ShardNodes arriving, sums;
  for (int p = 0; p <= processes_; ++p) slices.push_back(first.count() * p / processes_);
  for (int p = 0; p < processes_; ++p) {
    const ShardNodes theirs = nodes_of(p);
    nodes_from.push_back(std::ssize(theirs));
    arriving.insert(arriving.end(), theirs.begin(), theirs.end());
  }
  const Tensors received = group.exchange(own, slices, nodes_from);
  const Tensor all = Tensor::empty({first.count()}, first.device());
  own.clear();
  for (size_t i = 0; i < arriving.size(); ++i) push(sums, {arriving[i].level, arriving[i].index, received[i]});
  const Tensor slice = sums.at(0).values;
  copy_into(slice, all.view({slice.count()}, {1}, slices[static_cast<size_t>(group.rank())]));
  group.all_gather(all, slices);
  return all;
}

}  // namespace heed
