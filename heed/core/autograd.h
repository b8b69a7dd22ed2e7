// The tape. An op records how to send a gradient back; backward() walks the nodes from the newest to the oldest.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// The name of an op that has a gradient. Names come from the lists that the tests walk (ops.h, elementwise.h).
struct OpName {
  const char* text;
};

using Grads = std::vector<Tensor>;  // one per input, undefined where no gradient flows

// Whether an op on these inputs must be recorded.
bool tracking(std::initializer_list<const Tensor*> inputs);
bool tracking(const Tensors& inputs);

// Gives `out` a history. `back` maps the gradient of `out` to the gradients of `inputs`; what it captures is what is saved.
Tensor record(OpName op, Tensor out, Tensors inputs, std::function<Grads(const Tensor& g)> back);

// The same for an op with several outputs; a gradient that never arrived is undefined.
Tensors record_all(OpName op, Tensors outs, Tensors inputs, std::function<Grads(const Grads& gs)> back);

// An output that is cheaply computed again from what its op keeps anyway: norms, activations, dropout. `again` gives the same bits.
Tensor with_recompute(Tensor out, std::function<Tensor()> again);
bool has_recompute(const Tensor& x);

// What an op keeps of an input for its gradient: the tensor, or the recipe where it has one, so that its memory is free meanwhile.
class SavedInput {
 public:
  SavedInput() = default;
  // value: the input as the op reads it, which is what it is kept as
  SavedInput(const Tensor& input, const Tensor& value);
  Tensor get() const;

 private:
  struct Recompute;
  friend struct Slot;
  friend Tensor with_recompute(Tensor out, std::function<Tensor()> again);

  Tensor value_ = {};
  std::shared_ptr<Recompute> recompute_ = {};
};

// Whether the walk that calls a gradient is the last one through it: what only it has kept may be overwritten.
bool final_backward();

// Adds d(root)/d(leaf) to the gradient of every leaf. `seed` is the gradient of root, by default 1 for a single element.
// The graph is freed on the way, unless it is kept for another walk.
void backward(const Tensor& root, const Tensor& seed = {}, bool keep_graph = false);

// While one of these lives, this thread records nothing.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// function(inputs) without keeping its activations: backward computes them again. The second form hands the function
// random numbers and hands it the same ones the second time.
Tensor checkpoint(std::function<Tensor(const Tensors&)> function, const Tensors& inputs);
Tensor checkpoint(std::function<Tensor(const Tensors&, Rng&)> function, const Tensors& inputs, Rng& rng);

}  // namespace heed
