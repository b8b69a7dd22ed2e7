// The graph of autograd. A tensor's slot points to the node that computed it; a node points to the slots of its inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "heed/core/autograd.h"
#include "heed/core/module_work.h"

namespace heed {

using Look = std::function<void(const Tensor&)>;

struct Node {
  OpName op;
  uint64_t sequence;
  std::vector<std::shared_ptr<Slot>> inputs;   // null: that input needs no gradient
  std::function<Grads(const Grads&)> back;     // empty after a backward that freed the graph
  std::vector<Tensor> pending;                 // gradients of the outputs, as far as they have arrived
  std::vector<std::pair<size_t, Look>> looks;  // hooks on the outputs
  std::vector<Shape> input_shapes;
  ModuleName module;                    // whose work its gradient is; null: nothing is being counted
  std::shared_ptr<Node> next_deferred;  // while it waits to be freed
  bool queued = false;
  bool reaches_any_leaf = false;  // its gradient may add to leaves that are not among the inputs
};

// Several ops may save one output: the first that needs it recomputes it for all of them.
struct SavedInput::Recompute {
  std::function<Tensor()> again;
  Tensor value;         // between the first and the last get()
  int64_t waiting = 0;  // calls of get() that are left
};

struct Slot {
  Tensor grad;                                       // leaves only
  std::shared_ptr<SavedInput::Recompute> recompute;  // null: none
  std::shared_ptr<Node> node;                        // null: a leaf
  size_t output = 0;                                 // which output of the node
  std::vector<Look> looks;                           // leaves only
  ~Slot();
};

// The only access to a tensor's slot.
struct History {
  static std::shared_ptr<Slot>& slot(Tensor& x) { return x.slot_; }
  static const std::shared_ptr<Slot>& slot(const Tensor& x) { return x.slot_; }
};

}  // namespace heed
