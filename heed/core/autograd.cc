#include "heed/core/autograd.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <set>
#include <utility>

#include "heed/core/arrived_gradient.h"
#include "heed/core/autograd_graph.h"
#include "heed/core/complete_gradients.h"
#include "heed/core/copy.h"
#include "heed/core/memory_limit.h"
#include "heed/core/module_work.h"
#include "heed/core/set_gradient.h"
#include "heed/core/with_grad.h"

namespace heed {

namespace {

thread_local bool recording = true, in_final_backward = false, gradients_are_separate = false;
thread_local const Node* running_node = nullptr;  // whose gradients are being computed
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

// A value of this thread while one of these lives. They nest: a checkpoint's gradient runs backward through its own graph.
template <class T>
class During {
 public:
  During(T& variable, T value) : variable_(variable), before_(variable) { variable = value; }
  ~During() { variable_ = before_; }
  During(const During&) = delete;
  During& operator=(const During&) = delete;

 private:
  T &variable_, before_;
};
using Flag = During<bool>;

Tensor& sum_of(Slot& slot) { return slot.node ? slot.node->pending[slot.output] : slot.grad; }

// The gradient of a leaf: dense and separate from all others, so that clipping may change it in place.
Tensor own_copy(const Tensor& gradient, bool is_separate) {
  if (gradient.is_contiguous() && (is_separate || gradient.owns_data_alone())) return gradient.detach();
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
  if (const auto& slot = History::slot(out); slot && !has_room_to_save(out.device()))
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

namespace {

void run_backward(const Tensor& root, const Tensor& seed, bool keep_graph, CompleteGradients* complete) {
  check(root.needs_grad(), "backward: the tensor has no history; no input of it requires a gradient");
  check(seed.defined() || root.count() == 1, "backward: shape ", root.shape(), " needs a seed gradient; only one element has a default");
  check(!seed.defined() || seed.shape() == root.shape(), "backward: the seed has shape ", seed.defined() ? seed.shape() : Shape{},
        ", the tensor ", root.shape());
  common_device("backward", {&root, &seed});

  const NoGrad quiet;
  const Flag last(in_final_backward, !keep_graph);
  const auto older = [](const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->sequence < b->sequence; };
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, decltype(older)> queue(older);
  // After an error, gradients that have arrived at nodes must not count in the next backward.
  struct Drop {
    decltype(queue)& nodes;
    ~Drop() {
      for (; !nodes.empty(); nodes.pop()) {
        nodes.top()->queued = false;
        for (Tensor& arrived : nodes.top()->pending) arrived = {};
      }
    }
  } const drop{queue};

  std::set<std::shared_ptr<Slot>> watched;  // leaves with an on_gradient callback
  const auto deliver = [&](const std::shared_ptr<Slot>& slot, const Tensor& gradient, bool is_separate = false) {
    Tensor& sum = sum_of(*slot);
    if (!slot->node && !sum.defined())
      sum = own_copy(gradient, is_separate);
    else
      accumulate(sum, gradient);
    if (!slot->node) {
      if (!slot->looks.empty()) watched.insert(slot);
    } else if (!slot->node->queued) {
      slot->node->queued = true;
      queue.push(slot->node);
    }
  };

  deliver(History::slot(root), seed.defined() ? converted(seed, root.dtype()) : Tensor::ones(root.shape(), root.dtype(), root.device()));
  while (!queue.empty()) {
    const std::shared_ptr<Node> node = queue.top();
    queue.pop();
    node->queued = false;
    Grads arrived(node->pending.size());
    std::swap(arrived, node->pending);
    if (complete) complete->before(node->sequence);
    check(static_cast<bool>(node->back), "backward: the graph of ", node->op.text,
          " was freed by an earlier backward; keep_graph keeps it");
    for (const auto& [output, look] : node->looks)
      if (arrived[output].defined()) look(arrived[output]);
    const ModuleScope scope(node->module);
    const During<const Node*> running(running_node, node.get());
    const Flag separate(gradients_are_separate, false);
    Grads grads = node->back(arrived);
    check(grads.size() == node->inputs.size(), node->op.text, ": ", grads.size(), " gradients for ", node->inputs.size(), " inputs");
    arrived.clear();
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!node->inputs[i] || !grads[i].defined()) continue;
      check(grads[i].shape() == node->input_shapes[i], node->op.text, ": the gradient of input ", i, " has shape ", grads[i].shape(),
            ", the input ", node->input_shapes[i]);
      deliver(node->inputs[i], grads[i], gradients_are_separate);
      grads[i] = {};
    }
    if (!keep_graph) {
      node->back = nullptr;
      node->inputs.clear();
      node->input_shapes.clear();
    }
  }
  if (complete) complete->finish();
  for (const auto& slot : watched)
    for (const Look& look : slot->looks) look(slot->grad);
}

}  // namespace

void backward(const Tensor& root, const Tensor& seed, bool keep_graph) { run_backward(root, seed, keep_graph, nullptr); }

void backward(const Tensor& root, const Tensors& leaves, const std::function<void(size_t leaf)>& is_complete) {
  CompleteGradients complete(root, leaves, is_complete);
  run_backward(root, {}, false, &complete);
}

Tensor take_arrived_gradient(size_t input, DType dtype) {
  if (!running_node || !running_node->inputs.at(input)) return {};
  Tensor& sum = sum_of(*running_node->inputs[input]);
  if (!sum.defined() || sum.dtype() != dtype || !sum.is_contiguous() || !sum.owns_data_alone()) return {};
  return std::exchange(sum, {}).detach();
}

void returns_separate_gradients() { gradients_are_separate = true; }

NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }
WithGrad::WithGrad() : before_(recording) { recording = true; }
WithGrad::~WithGrad() { recording = before_; }

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
