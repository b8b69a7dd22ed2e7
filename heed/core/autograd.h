// Autograd. An op records a function that computes the gradients of its inputs; backward() calls these functions from the newest op to the
// oldest.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// The name of an op that has a gradient. Names come from the lists in ops.h and elementwise.h, which the tests iterate over.
struct OpName {
  const char* text;
};

using Grads = std::vector<Tensor>;  // one per input, undefined where no gradient flows

// Whether an op on these inputs must be recorded.
bool tracking(std::initializer_list<const Tensor*> inputs);
bool tracking(const Tensors& inputs);

// Records the op that computed `out`. `back` maps the gradient of `out` to the gradients of `inputs`; whatever it captures is saved for
// backward.
Tensor record(OpName op, Tensor out, Tensors inputs, std::function<Grads(const Tensor& g)> back);

// The same for an op with several outputs; the gradient of an output that was not used is undefined.
Tensors record_all(OpName op, Tensors outs, Tensors inputs, std::function<Grads(const Grads& gs)> back);

// For outputs that are cheap to recompute from what their op saves anyway: norms, activations, dropout. `again` returns the same bits. On a
// GPU with half of its memory free nothing is recomputed: saving the output costs no time there.
Tensor with_recompute(Tensor out, std::function<Tensor()> again);
bool has_recompute(const Tensor& x);

// What an op saves of an input for its gradient: the tensor, or the function that recomputes it if there is one, so that its memory is
// free.
class SavedInput {
 public:
  SavedInput() = default;
  // value: the input as the op reads it (dense, converted); this is what is saved
  SavedInput(const Tensor& input, const Tensor& value);
  Tensor get() const;

 private:
  struct Recompute;
  friend struct Slot;
  friend Tensor with_recompute(Tensor out, std::function<Tensor()> again);

  Tensor value_ = {};
  std::shared_ptr<Recompute> recompute_ = {};
};

// Whether the graph is freed by this backward: tensors that only the calling closure holds may then be overwritten.
bool final_backward();

// Adds d(root)/d(leaf) to the gradient of every leaf. `seed` is the gradient of root, by default 1 for a single element; it is converted to
// the dtype of root. The graph is freed on the way, unless `keep_graph` is set.
void backward(const Tensor& root, const Tensor& seed = {}, bool keep_graph = false);

// While an object of this class exists, this thread records nothing.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// function(inputs) without saving its activations: backward recomputes them. Other tensors that the function uses should be leaves, such as
// parameters. The second form passes random numbers to the function, the same ones both times.
Tensor checkpoint(std::function<Tensor(const Tensors&)> function, const Tensors& inputs);
Tensor checkpoint(std::function<Tensor(const Tensors&, Rng&)> function, const Tensors& inputs, Rng& rng);

}  // namespace heed
