// shard_optimizer=true: every process keeps the optimizer's state of a slice of all parameters, updates those, and gets the others from the
// processes that own them (Rajbhandari et al. 2020, ZeRO stage 1).
#pragma once

#include <functional>

#include "heed/core/api.h"
#include "heed/dist/group.h"

namespace HEED_API heed {

class OwnedSlices {
 public:
  OwnedSlices(Group& group, Tensors whole);  // whole: dense f32 tensors

  bool owns(size_t i) const { return counts_[i] > 0; }        // a part of tensor i
  const Tensor& slice(size_t i) const { return slices_[i]; }  // that part, as a separate leaf tensor
  Tensor part_of(const Tensor& x, size_t i) const;            // the same part of x, which is like tensor i
  void take_gradients() const;                                // the slices get their parts of the whole tensors' gradients
  // Gathers the parts of all processes and calls use() with each whole tensor, which is valid only during the call: the memory of one
  // bucket is reused for all. parts: like slice(i), undefined where nothing is owned
  void each_gathered(const Tensors& parts, const std::function<void(size_t i, const Tensor& whole)>& use) const;
  void share() const;  // the whole tensors get the slices of all processes

 private:
  Group& group_;
  const Tensors whole_;
  std::vector<int64_t> offsets_, begins_;  // of tensors and processes in the concatenated numbers, and their end
  std::vector<int64_t> firsts_, counts_;   // of the owned part of each tensor
  Tensors slices_;
};

}  // namespace heed
