#include "heed/nn/feed_forward.h"

#include "heed/core/nearest.h"

namespace heed {

Tensor FeedForward::operator()(const Tensor& x, Mode mode) const {
  Tensor middle;  // (..., W)
  if (gate.defined()) {
    middle = gate(x, activation) * up(x);
  } else if (up.outputs() != down.inputs()) {
    const Tensors parts = split(up(x), std::vector<int64_t>{down.inputs(), down.inputs()}, -1);
    middle = activate(parts[0], activation) * parts[1];
  } else {
    middle = up(x, activation);
  }
  return down(heed::dropout(middle, dropout, mode));
}

FeedForward make_feed_forward(const Scope& scope, const FeedForwardOptions& options) {
  const int64_t width = options.width, hidden_width = options.hidden_width == 0 ? 4 * width : options.hidden_width;
  check(width >= 1 && hidden_width >= 1, "feed_forward: widths ", width, " and ", hidden_width, ", expected 1 or more");
  FeedForward out{.activation = options.activation, .dropout = options.dropout};
  LinearOptions part{.bias = options.bias, .stored_transposed = options.stored_transposed};
  out.up = Linear(scope / options.names.up, width, options.fused ? 2 * hidden_width : hidden_width, part);
  if (options.gated && !options.fused) out.gate = Linear(scope / options.names.gate, width, hidden_width, part);
  part.weight = scope.initializer().residual;
  out.down = Linear(scope / options.names.down, hidden_width, width, part);
  return out;
}

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
#define HEED_ACTIVATE(Formula, function) \
  case Activation::function: return function(x);
    HEED_ACTIVATIONS(HEED_ACTIVATE)
#undef HEED_ACTIVATE
    case Activation::none: break;
  }
  return x;
}

const std::map<std::string, Activation>& activation_names() {
  static const std::map<std::string, Activation> all = [] {
    std::map<std::string, Activation> out{{"linear", Activation::none},
                                          {"swish", Activation::silu},
                                          {"gelu_python", Activation::gelu},
                                          {"gelu_new", Activation::gelu_tanh},
                                          {"gelu_fast", Activation::gelu_tanh},
                                          {"gelu_accurate", Activation::gelu_tanh},
                                          {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                          {"gelu_python_tanh", Activation::gelu_tanh}};
#define HEED_NAME(Formula, function) out[#function] = Activation::function;
    HEED_ACTIVATIONS(HEED_NAME)
#undef HEED_NAME
    return out;
  }();
  return all;
}

Activation activation_named(const std::string& name) {
  const std::map<std::string, Activation>& known = activation_names();
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [each, activation] : known) names.push_back(each);
  check(name != "prelu" && name != "xielu", "activation: '", name, "' has parameters of its own, which heed does not support");
  fail("activation: '", name, "' is not known", did_you_mean(name, names));
}

}  // namespace heed
