#include "heed/train/shard_sum.h"

#include <algorithm>
#include <cstdlib>

#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/core/parse.h"
#include "heed/core/set_gradient.h"
#include "heed/dist/buckets.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

int64_t bucket_bytes() {
  const char* const set = std::getenv("HEED_BUCKET_BYTES");
  if (set == nullptr || *set == '\0') return kBucketBytes;
  const std::optional<int64_t> bytes = parse_number<int64_t>(set);
  check<UsageError>(bytes && *bytes >= 0, "HEED_BUCKET_BYTES is '", set, "', expected bytes, or 0 for one bucket");
  return *bytes;
}

}  // namespace

ShardSum::ShardSum(Group& group, const Shards& shards, const std::vector<Parameter>& parameters)
    : group_(group), shards_(shards), tree_(std::make_shared<ShardTree>(shards, group.size())) {
  for (const Parameter& parameter : parameters)
    if (parameter.options.learned) learned_.push_back(parameter.tensor);
  group.connect(learned_.at(0).device());
  if (group.background() && !is_connected()) thread_.emplace("the thread that exchanges gradients");
  // Modules register their parameters in the order of forward; backward completes the gradients in the reverse one.
  constexpr auto of_number = static_cast<int64_t>(sizeof(float));
  const int64_t bytes = group.size() > 1 ? bucket_bytes() : 0, most = (bytes + of_number - 1) / of_number;
  check_same(group, "HEED_BUCKET_BYTES", std::to_string(bytes));
  bucket_of_.resize(learned_.size());
  for (size_t i = learned_.size(); i-- > 0;) {
    if (buckets_.empty() || (most > 0 && buckets_.back().count + learned_[i].count() > most)) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket_of_[i] = buckets_.size() - 1;
    bucket.parameters.push_back(i);
    bucket.offsets.push_back(bucket.count);
    bucket.count += learned_[i].count();
  }
}

Tensor ShardSum::part(const Tensor& values, const Bucket& bucket, size_t i) const {
  const Tensor& like = learned_[bucket.parameters[i]];
  return reshape(values.view({like.count()}, {1}, bucket.offsets[i]), like.shape());
}

void ShardSum::begin_step() {
  next_ = shards_.begin;
  sent_ = 0;
  present_.assign(learned_.size(), false);
}

void ShardSum::begin_shard() {
  for (const Tensor& parameter : learned_) parameter.zero_grad();
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
  taken_ = 0;
}

// All processes send the buckets in the same order.
void ShardSum::complete(size_t i) {
  --buckets_[bucket_of_[i]].missing;
  for (; taken_ < buckets_.size() && buckets_[taken_].missing == 0; ++taken_) take(buckets_[taken_]);
}

void ShardSum::add() {
  for (; taken_ < buckets_.size(); ++taken_) take(buckets_[taken_]);
  ++next_;
}

void ShardSum::take(Bucket& bucket) {
  const NoGrad no_grad;
  const Device device = learned_.at(0).device();
  const auto has_gradient = [&](size_t i) { return learned_[i].grad().defined(); };
  const bool all = std::all_of(bucket.parameters.begin(), bucket.parameters.end(), has_gradient);
  const Tensor values = all ? Tensor::empty({bucket.count}, device) : Tensor::zeros({bucket.count}, device);
  for (size_t i = 0; i < bucket.parameters.size(); ++i) {
    const size_t parameter = bucket.parameters[i];
    if (!has_gradient(parameter)) continue;
    copy_into(learned_[parameter].grad(), part(values, bucket, i));
    learned_[parameter].zero_grad();  // its memory is free
    present_[parameter] = true;
  }
  tree_->push(bucket.nodes, {.level = 0, .index = next_, .values = values});
  if (next_ + 1 == shards_.end) send(bucket);
}

void ShardSum::send(Bucket& bucket) {
  ++sent_;
  Tensors own;
  const bool to_host = group_.size() > 1 && !is_connected();
  for (ShardNode& node : bucket.nodes) own.push_back(to_host ? node.values.to(kCpu) : std::move(node.values));
  bucket.nodes.clear();
  bucket.sum = std::make_shared<Tensor>();
  if (!thread_) {
    *bucket.sum = tree_->sum_of_all(group_, std::move(own));
    return;
  }
  thread_->add([group = group_.background(), tree = tree_, sum = bucket.sum, own = std::move(own)]() mutable {
    *sum = tree->sum_of_all(*group, std::move(own));
  });
}

std::vector<size_t> ShardSum::absent() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < present_.size(); ++i)
    if (!present_[i]) out.push_back(i);
  return out;
}

void ShardSum::finish(const std::vector<size_t>& absent) {
  const NoGrad no_grad;
  if (thread_) thread_->wait();
  for (Bucket& bucket : buckets_) {
    const Tensor sum = bucket.sum->to(learned_.at(0).device());
    for (size_t i = 0; i < bucket.parameters.size(); ++i) set_gradient(learned_[bucket.parameters[i]], part(sum, bucket, i));
    bucket.sum.reset();
  }
  for (const size_t i : absent) learned_[i].zero_grad();
}

void ShardSum::give_up() {
  const Device device = is_connected() ? learned_.at(0).device() : kCpu;
  for (size_t b = sent_; b < buckets_.size(); ++b) {
    buckets_[b].nodes = tree_->nodes_of(group_.rank());
    for (ShardNode& node : buckets_[b].nodes) node.values = Tensor::zeros({buckets_[b].count}, device);
    send(buckets_[b]);
  }
}

void ShardSum::cancel() {
  if (thread_) thread_->wait();
  for (Bucket& bucket : buckets_) bucket.sum.reset();
  for (const Tensor& parameter : learned_) parameter.zero_grad();
}

}  // namespace heed
