#include "heed/train/owned_slices.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/core/set_gradient.h"
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

Tensors OwnedSlices::gathered(const Tensors& parts) const {
  const NoGrad no_grad;
  const Tensor all = Tensor::empty({offsets_.back()}, kCpu);
  for (size_t i = 0; i < whole_.size(); ++i)
    if (owns(i)) copy_into(parts[i], all.view({counts_[i]}, {1}, offsets_[i] + firsts_[i]));
  group_.all_gather(all, begins_);
  Tensors out;
  for (size_t i = 0; i < whole_.size(); ++i) out.push_back(reshape(all.view({whole_[i].count()}, {1}, offsets_[i]), whole_[i].shape()));
  return out;
}

void OwnedSlices::share() const {
  const Tensors values = gathered(slices_);
  for (size_t i = 0; i < whole_.size(); ++i) {
    if (owns(i)) slices_[i].zero_grad();
    copy_into(values[i], whole_[i]);
  }
}

}  // namespace heed
