// Slots and nodes. A tensor's slot points to the node that computed it; a node points to the slots of its inputs.
#include "heed/core/autograd.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <set>

#include "heed/core/copy.h"
#include "heed/core/module_work.h"
#include "heed/core/set_gradient.h"
#include "heed/core/with_grad.h"

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
};

// Several ops may save one output: the first that needs it recomputes it for all of them.
struct SavedInput::Recompute {
  std::function<Tensor()> again;
  Tensor value;         // between the first that asked and the last
  int64_t waiting = 0;  // those that have not asked
};

struct Slot {
  Tensor grad;                                       // leaves only
  std::shared_ptr<SavedInput::Recompute> recompute;  // null: none
  std::shared_ptr<Node> node;                        // null: a leaf
  size_t output = 0;                                 // which output of the node
  std::vector<Look> looks;                           // leaves only
  ~Slot();
};

// The only door to a tensor's slot.
struct History {
  static std::shared_ptr<Slot>& slot(Tensor& x) { return x.slot_; }
  static const std::shared_ptr<Slot>& slot(const Tensor& x) { return x.slot_; }
};

namespace {

thread_local bool recording = true, in_final_backward = false;
std::atomic<uint64_t> next_sequence{0};

// Freeing a long chain must not recurse: dying nodes are linked to a list here and the outermost call frees them one by one. Destructors
// call this, so it must not allocate.
void defer_free(std::shared_ptr<Node> node) {
  if (node.use_count() > 1) return;  // another of its outputs lives
  thread_local std::shared_ptr<Node> deferred;
  thread_local bool draining = false;
  node->next_deferred = std::move(deferred);
  deferred = std::move(node);
  if (draining) return;
  draining = true;
  while (deferred) {
    const std::shared_ptr<Node> last = std::move(deferred);
    deferred = std::move(last->next_deferred);
  }
  draining = false;
}

// A flag of this thread while one of these lives. They nest: a checkpoint's gradient walks its own graph.
class Flag {
 public:
  Flag(bool& flag, bool value) : flag_(flag), before_(flag) { flag = value; }
  ~Flag() { flag_ = before_; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool &flag_, before_;
};

// The gradient of a leaf: dense and not shared, so that clipping may change it in place.
Tensor own_copy(const Tensor& gradient) {
  if (gradient.is_contiguous() && gradient.owns_data_alone()) return gradient.detach();
  Tensor copy = Tensor::empty(gradient.shape(), gradient.dtype(), gradient.device());
  copy_into(gradient, copy);
  return copy;
}

}  // namespace

Slot::~Slot() {
  if (node) defer_free(std::move(node));
}

bool tracking(std::initializer_list<const Tensor*> inputs) {
  return recording && std::any_of(inputs.begin(), inputs.end(), [](const Tensor* input) { return input->needs_grad(); });
}

bool tracking(const Tensors& inputs) {
  return recording && std::any_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return input.needs_grad(); });
}

Tensors record_all(OpName op, Tensors outs, Tensors inputs, std::function<Grads(const Grads&)> back) {
  if (!tracking(inputs)) return outs;
  auto node = std::make_shared<Node>();
  node->op = op;
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  node->back = std::move(back);
  node->module = ModuleScope::current();
  node->pending.resize(outs.size());
  node->inputs.reserve(inputs.size());
  node->input_shapes.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    node->inputs.push_back(History::slot(input));
    node->input_shapes.push_back(input.shape());
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    auto slot = std::make_shared<Slot>();
    slot->node = node;
    slot->output = i;
    History::slot(outs[i]) = std::move(slot);
  }
  return outs;
}

Tensor record(OpName op, Tensor out, Tensors inputs, std::function<Grads(const Tensor&)> back) {
  if (!tracking(inputs)) return out;
  Tensors outs;
  outs.push_back(std::move(out));
  return record_all(op, std::move(outs), std::move(inputs), [back = std::move(back)](const Grads& gs) { return back(gs[0]); })[0];
}

Tensor with_recompute(Tensor out, std::function<Tensor()> again) {
  if (const auto& slot = History::slot(out))
    slot->recompute = std::make_shared<SavedInput::Recompute>(SavedInput::Recompute{std::move(again), {}});
  return out;
}

bool has_recompute(const Tensor& x) { return History::slot(x) && History::slot(x)->recompute; }

SavedInput::SavedInput(const Tensor& input, const Tensor& value) {
  if (const auto& slot = History::slot(input)) recompute_ = slot->recompute;
  if (recompute_)
    ++recompute_->waiting;
  else
    value_ = value;
}

Tensor SavedInput::get() const {
  if (!recompute_) return value_;
  if (!recompute_->value.defined()) recompute_->value = recompute_->again();
  const Tensor value = recompute_->value;
  if (--recompute_->waiting <= 0) recompute_->value = {};
  return value;
}

bool final_backward() { return in_final_backward; }

void backward(const Tensor& root, const Tensor& seed, bool keep_graph) {
  check(root.needs_grad(), "backward: the tensor has no history; no input of it requires a gradient");
  check(seed.defined() || root.count() == 1, "backward: shape ", root.shape(), " needs a seed gradient; only one element has a default");
  check(!seed.defined() || seed.shape() == root.shape(), "backward: the seed has shape ", seed.defined() ? seed.shape() : Shape{},
        ", the tensor ", root.shape());

  const NoGrad quiet;
  const Flag last(in_final_backward, !keep_graph);
  const auto older = [](const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->sequence < b->sequence; };
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, decltype(older)> queue(older);

  std::set<std::shared_ptr<Slot>> watched;  // leaves with an on_gradient callback
  const auto deliver = [&](const std::shared_ptr<Slot>& slot, const Tensor& gradient) {
    Tensor& sum = slot->node ? slot->node->pending[slot->output] : slot->grad;
    if (!slot->node && !sum.defined())
      sum = own_copy(gradient);
    else
      accumulate(sum, gradient);
    if (!slot->node) {
      if (!slot->looks.empty()) watched.insert(slot);
    } else if (!slot->node->queued) {
      slot->node->queued = true;
      queue.push(slot->node);
    }
  };

  deliver(History::slot(root), seed.defined() ? seed.detach() : Tensor::ones(root.shape(), root.dtype(), root.device()));
  while (!queue.empty()) {
    const std::shared_ptr<Node> node = queue.top();
    queue.pop();
    node->queued = false;
    check(static_cast<bool>(node->back), "backward: the graph of ", node->op.text,
          " was freed by an earlier walk; keep it with keep_graph");
    for (const auto& [output, look] : node->looks)
      if (node->pending[output].defined()) look(node->pending[output]);
    const ModuleScope scope(node->module);
    Grads grads = node->back(node->pending);
    check(grads.size() == node->inputs.size(), node->op.text, ": ", grads.size(), " gradients for ", node->inputs.size(), " inputs");
    for (Tensor& arrived : node->pending) arrived = {};
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!node->inputs[i] || !grads[i].defined()) continue;
      check(grads[i].shape() == node->input_shapes[i], node->op.text, ": the gradient of input ", i, " has shape ", grads[i].shape(),
            ", the input ", node->input_shapes[i]);
      deliver(node->inputs[i], grads[i]);
      grads[i] = {};
    }
    if (!keep_graph) {
      node->back = nullptr;
      node->inputs.clear();
      node->input_shapes.clear();
    }
  }
  for (const auto& slot : watched)
    for (const Look& look : slot->looks) look(slot->grad);
}

NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }
WithGrad::WithGrad() : before_(recording) { recording = true; }
WithGrad::~WithGrad() { recording = before_; }

Tensor checkpoint(std::function<Tensor(const Tensors&)> function, const Tensors& inputs) {
  Tensor out;
  {
    const NoGrad quiet;
    out = function(inputs).detach();
  }
  if (!recording) return out;
  // The function may reach parameters that are not among its inputs, so the node is recorded even if no input requires a gradient.
  Tensors tracked = inputs;
  if (!tracking(tracked)) tracked.push_back(Tensor::zeros({0}, DType::f32, out.device()).require_grad());
  return record({"checkpoint"}, out, tracked,
                [function = std::move(function), inputs, extra = tracked.size() - inputs.size()](const Tensor& g) {
                  Tensors fresh;
                  for (const Tensor& input : inputs) {
                    fresh.push_back(input.detach());
                    if (input.needs_grad()) fresh.back().require_grad();
                  }
                  Tensor again;
                  {
                    const Flag loud(recording, true);
                    again = function(fresh);
                  }
                  if (again.needs_grad()) backward(again, g);
                  Grads grads;
                  for (const Tensor& input : fresh) grads.push_back(input.grad());
                  grads.resize(grads.size() + extra);
                  return grads;
                });
}

Tensor checkpoint(std::function<Tensor(const Tensors&, Rng&)> function, const Tensors& inputs, Rng& rng) {
  const Rng start = rng;
  bool first = true;
  return checkpoint(
      [function = std::move(function), start, first, &rng](const Tensors& in) mutable {
        Rng replay = start;
        Tensor out = function(in, replay);
        if (first) rng = replay;
        first = false;
        return out;
      },
      inputs);
}

Tensor& Tensor::require_grad() {
  check(is_floating(dtype_), "require_grad: gradients flow through floating numbers only, this is ", name_of(dtype_));
  check(!slot_ || !slot_->node, "require_grad: the tensor is the result of an op; detach it first");
  if (!slot_) slot_ = std::make_shared<Slot>();
  return *this;
}

Tensor Tensor::grad() const { return slot_ ? slot_->grad : Tensor(); }

void Tensor::zero_grad() const { set_gradient(*this, {}); }

void set_gradient(const Tensor& leaf, Tensor gradient) {
  if (const auto& slot = History::slot(leaf)) slot->grad = std::move(gradient);
}

Tensor Tensor::detach() const {
  Tensor out = *this;
  out.slot_ = nullptr;
  return out;
}

void Tensor::on_gradient(Look look) const {
  check(slot_ != nullptr, "on_gradient: the tensor takes no gradient");
  if (slot_->node) {
    slot_->node->looks.emplace_back(slot_->output, std::move(look));
  } else {
    slot_->looks.push_back(std::move(look));
  }
}

}  // namespace heed
