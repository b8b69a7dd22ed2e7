#include "heed/train/owned_slices.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/core/set_gradient.h"
#include "heed/dist/buckets.h"
#include "heed/ops/ops.h"

namespace heed {

OwnedSlices::OwnedSlices(Group& group, Tensors whole) : group_(group), whole_(std::move(whole)), offsets_{0} {
  for (const Tensor& each : whole_) offsets_.push_back(offsets_.back() + each.count());
  for (int p = 0; p <= group.size(); ++p) begins_.push_back(offsets_.back() * p / group.size());
  const int64_t begin = begins_[static_cast<size_t>(group.rank())], end = begins_[static_cast<size_t>(group.rank()) + 1];
  for (size_t i = 0; i < whole_.size(); ++i) {
    const int64_t first = std::clamp(begin, offsets_[i], offsets_[i + 1]), last = std::clamp(end, offsets_[i], offsets_[i + 1]);
    firsts_.push_back(first - offsets_[i]);
    counts_.push_back(last - first);
    slices_.push_back(owns(i) ? part_of(whole_[i], i).require_grad() : Tensor());
  }
}

Tensor OwnedSlices::part_of(const Tensor& x, size_t i) const { return x.view({counts_[i]}, {1}, firsts_[i]); }

void OwnedSlices::take_gradients() const {
  for (size_t i = 0; i < whole_.size(); ++i)
    if (owns(i)) set_gradient(slices_[i], whole_[i].grad().defined() ? part_of(contiguous(whole_[i].grad()), i) : Tensor());
}

void OwnedSlices::each_gathered(const Tensors& parts, const std::function<void(size_t i, const Tensor& whole)>& use) const {
  constexpr int64_t most = kBucketBytes / static_cast<int64_t>(sizeof(float));
  const NoGrad no_grad;
  const Device device = whole_.at(0).device();
  Tensor buffer;  // one for all: the memory pool would keep blocks of several sizes
  for (size_t first = 0, last = 0; first < whole_.size(); first = last) {
    for (last = first + 1; last < whole_.size() && offsets_[last + 1] - offsets_[first] <= most;) ++last;
    const int64_t begin = offsets_[first], end = offsets_[last];
    std::vector<int64_t> begins;
    for (const int64_t each : begins_) begins.push_back(std::clamp(each, begin, end) - begin);
    if (!buffer.defined() || buffer.count() < end - begin)
      buffer = Tensor::empty({std::max(end - begin, std::min(most, offsets_.back()))}, group_.connects(device) ? device : kCpu);
    const Tensor all = buffer.view({end - begin}, {1}, 0);
    for (size_t i = first; i < last; ++i)
      if (owns(i)) copy_into(parts[i], all.view({counts_[i]}, {1}, offsets_[i] - begin + firsts_[i]));
    group_.all_gather(all, begins);
    for (size_t i = first; i < last; ++i) use(i, reshape(all.view({whole_[i].count()}, {1}, offsets_[i] - begin), whole_[i].shape()));
  }
}

void OwnedSlices::share() const {
  each_gathered(slices_, [&](size_t i, const Tensor& whole) {
    if (owns(i)) slices_[i].zero_grad();
    copy_into(whole, whole_[i]);
  });
}

}  // namespace heed
