// A backward that says when gradients are complete, so that they can be sent to other processes while it computes the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// backward(root) that calls is_complete(i) for each of the leaves as soon as no op that adds to the gradient of leaf i is left, before it
// runs the other ops.
void backward(const Tensor& root, const Tensors& leaves, const std::function<void(size_t leaf)>& is_complete);

// backward() visits nodes by falling number. So a gradient is complete when the lowest node that adds to it has run.
class CompleteGradients {
 public:
  CompleteGradients(const Tensor& root, const Tensors& leaves, std::function<void(size_t leaf)> is_complete);

  void before(uint64_t sequence);  // the node with this number runs next
  void finish();                   // no node is left

 private:
  const std::function<void(size_t leaf)> is_complete_;
  std::vector<std::pair<uint64_t, size_t>> waiting_ = {};  // the lowest node of a leaf, and the leaf; the highest comes last
};

}  // namespace heed
