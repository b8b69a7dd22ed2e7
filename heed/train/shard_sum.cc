#include "heed/train/shard_sum.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/core/set_gradient.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

bool is_running_statistic(const Parameter& parameter) {
  return parameter.name.ends_with("running_mean") || parameter.name.ends_with("running_var");
}

}  // namespace

ShardSum::ShardSum(Group& group, const Shards& shards, const std::vector<Parameter>& parameters) : group_(group), shards_(shards) {
  for (const Parameter& parameter : parameters)
    if (parameter.options.learned)
      learned_.push_back(parameter.tensor);
    else if (is_running_statistic(parameter))
      statistics_.push_back(parameter.tensor);
  int64_t count = 0;
  for (const Tensors* list : {&learned_, &statistics_})
    for (const Tensor& tensor : *list) {
      offsets_.push_back(count);
      count += tensor.count();
    }
  offsets_.push_back(count);
  for (int p = 0; p <= group.size(); ++p) slices_.push_back(count * p / group.size());
}

Tensor ShardSum::part(const Tensor& values, size_t i) const {
  const Tensor& like = i < learned_.size() ? learned_[i] : statistics_[i - learned_.size()];
  return reshape(values.view({like.count()}, {1}, offsets_[i]), like.shape());
}

void ShardSum::begin_step() {
  nodes_.clear();
  next_ = shards_.begin;
  present_.assign(learned_.size(), false);
  before_.clear();
  for (const Tensor& statistic : statistics_) {
    before_.push_back(Tensor::empty(statistic.shape(), statistic.device()));
    copy_into(statistic, before_.back());
  }
}

void ShardSum::begin_shard() {
  for (const Tensor& parameter : learned_) parameter.zero_grad();
  for (size_t i = 0; i < statistics_.size(); ++i) copy_into(before_[i], statistics_[i]);
}

void ShardSum::cancel() {
  begin_shard();
  nodes_.clear();
}

void ShardSum::add(double share) {
  const NoGrad no_grad;
  const Device device = learned_.at(0).device();
  const bool complete = std::all_of(learned_.begin(), learned_.end(), [](const Tensor& each) { return each.grad().defined(); });
  const Tensor values = complete ? Tensor::empty({offsets_.back()}, device) : Tensor::zeros({offsets_.back()}, device);
  for (size_t i = 0; i < learned_.size(); ++i) {
    if (!learned_[i].grad().defined()) continue;
    copy_into(learned_[i].grad(), part(values, i));
    present_[i] = true;
  }
  for (size_t i = 0; i < statistics_.size(); ++i)
    copy_into(scale(statistics_[i], static_cast<float>(share)), part(values, learned_.size() + i));
  push(nodes_, {.level = 0, .index = next_++, .values = values});
}

// Adds the node to its neighbour if that is there, and so on upwards. A node without a neighbour is its own sum.
void ShardSum::push(std::vector<Node>& nodes, Node node) const {
  while ((int64_t{1} << node.level) < shards_.count) {
    const bool is_right = node.index % 2 == 1, is_last = ((node.index + 1) << node.level) >= shards_.count;
    if (is_right) {
      if (nodes.empty() || nodes.back().level != node.level || nodes.back().index != node.index - 1) break;
      Node left = std::move(nodes.back());
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

std::vector<ShardSum::Node> ShardSum::nodes_of(int rank) const {
  std::vector<Node> nodes;
  const auto [begin, end] = shard_range(shards_.count, rank, group_.size());
  for (int64_t shard = begin; shard < end; ++shard) push(nodes, {.level = 0, .index = shard, .values = {}});
  return nodes;
}

Tensor ShardSum::sum_of_all() {
  if (!shards_.fixed_tree) {
    group_.all_reduce(nodes_.at(0).values);
    return nodes_[0].values;
  }
  if (group_.size() == 1) return nodes_.at(0).values;
  Tensors own;
  for (Node& node : nodes_) own.push_back(std::move(node.values));
  std::vector<Node> arriving, sums;
  std::vector<int64_t> nodes_from;
  for (int p = 0; p < group_.size(); ++p) {
    const std::vector<Node> theirs = nodes_of(p);
    nodes_from.push_back(std::ssize(theirs));
    arriving.insert(arriving.end(), theirs.begin(), theirs.end());
  }
  const Tensors received = group_.exchange(own, slices_, nodes_from);
  for (size_t i = 0; i < arriving.size(); ++i) push(sums, {arriving[i].level, arriving[i].index, received[i]});
  const Tensor slice = sums.at(0).values, all = Tensor::empty({offsets_.back()}, kCpu);
  copy_into(slice, all.view({slice.count()}, {1}, slices_[static_cast<size_t>(group_.rank())]));
  group_.all_gather(all, slices_);
  return all.to(learned_.at(0).device());
}

std::vector<size_t> ShardSum::absent() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < present_.size(); ++i)
    if (!present_[i]) out.push_back(i);
  return out;
}

void ShardSum::finish(const std::vector<size_t>& absent) {
  const NoGrad no_grad;
  const Tensor sum = sum_of_all();
  nodes_.clear();
  for (size_t i = 0; i < learned_.size(); ++i) set_gradient(learned_[i], part(sum, i));
  for (const size_t i : absent) learned_[i].zero_grad();
  for (size_t i = 0; i < statistics_.size(); ++i) copy_into(part(sum, learned_.size() + i), statistics_[i]);
}

}  // namespace heed
