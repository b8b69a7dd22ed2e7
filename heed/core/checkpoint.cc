// Activation checkpointing: a part of a network whose activations are computed again in backward.
#include "heed/core/autograd.h"
#include "heed/core/autograd_graph.h"
#include "heed/core/with_grad.h"

namespace heed {

Tensor checkpoint(std::function<Tensor(const Tensors&)> function, const Tensors& inputs) {
  Tensor out;
  {
    const NoGrad quiet;
    out = function(inputs).detach();
  }
  // The function may reach parameters that are not among its inputs, so the node is recorded even if no input requires a gradient.
  Tensors tracked = inputs;
  if (!tracking(tracked)) tracked.push_back(Tensor::zeros({0}, DType::f32, out.device()).require_grad());
  if (!tracking(tracked)) return out;
  out = record({"checkpoint"}, out, tracked,
               [function = std::move(function), inputs, extra = tracked.size() - inputs.size()](const Tensor& g) {
                 Tensors fresh;
                 for (const Tensor& input : inputs) {
                   fresh.push_back(input.detach());
                   if (input.needs_grad()) fresh.back().require_grad();
                 }
                 Tensor again;
                 {
                   const WithGrad loud;
                   again = function(fresh);
                 }
                 if (again.needs_grad()) backward(again, g);
                 Grads grads;
                 for (const Tensor& input : fresh) grads.push_back(input.grad());
                 grads.resize(grads.size() + extra);
                 return grads;
               });
  History::slot(out)->node->reaches_any_leaf = true;
  return out;
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

}  // namespace heed
