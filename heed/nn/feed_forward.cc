#include "heed/nn/feed_forward.h"

#include <algorithm>
#include <numeric>

#include "heed/core/dry_run.h"
#include "heed/core/nearest.h"
#include "heed/ops/ops.h"

namespace heed {

namespace {

// Every expert computes the tokens that chose it; their rows are put back in order and summed with their factors.
Tensor mix_experts(const FeedForward& block, const Tensor& x, Mode mode) {
  const int64_t D = x.size(-1), T = x.count() / std::max<int64_t>(D, 1), E = std::ssize(block.experts), k = block.top;
  const Tensor tokens = reshape(x, {T, D});
  const Routing routing = route(block.router(cast(tokens, DType::f32)), k);
  if (mode.training()) BalanceLosses::add(routing.balance * block.balance);
  std::vector<std::vector<int64_t>> tokens_of(static_cast<size_t>(E));
  std::vector<int64_t> place(static_cast<size_t>(T * k));  // in the rows of its expert, then in all rows
  for (size_t i = 0; i < place.size(); ++i) {
    std::vector<int64_t>& own = tokens_of[static_cast<size_t>(routing.chosen[i])];
    place[i] = std::ssize(own);
    own.push_back(static_cast<int64_t>(i) / k);
  }
  Tensors rows;
  std::vector<int64_t> first(static_cast<size_t>(E));
  int64_t count = 0;
  for (size_t e = 0; e < tokens_of.size(); ++e) {
    first[e] = count;
    const int64_t own = std::ssize(tokens_of[e]);
    if (own > 0) rows.push_back(block.experts[e](index_select(tokens, 0, Tensor::from(tokens_of[e], {own}, x.device())), mode));
    count += own;
  }
  if (rows.empty()) return x;  // no tokens
  for (size_t i = 0; i < place.size(); ++i) place[i] += first[static_cast<size_t>(routing.chosen[i])];
  const Tensor ordered = index_select(concat(rows, 0), 0, Tensor::from(place, {T * k}, x.device()));
  const Tensor factors = cast(reshape(routing.factors, {T, k, 1}), x.dtype());
  return reshape(sum(reshape(ordered, {T, k, D}) * factors, {1}), x.shape());
}

}  // namespace

Routing route(const Tensor& logits, int64_t top) {
  check(logits.rank() == 2 && 1 <= top && top <= logits.size(1), "experts: ", top, " of logits ", logits.shape(), ", expected (T, E)");
  const int64_t T = logits.size(0), E = logits.size(1);
  const Tensor probabilities = softmax(logits);
  const std::vector<float> values = probabilities.to_vector<float>();
  Routing out;
  std::vector<int64_t> order(static_cast<size_t>(E)), flat;
  std::vector<float> shares(static_cast<size_t>(E));
  for (int64_t t = 0; t < T; ++t) {
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto row = values.begin() + t * E;
    // A dry run has no probabilities: there the experts take turns.
    if (DryRun::newest())
      std::rotate(order.begin(), order.begin() + t * top % E, order.end());
    else
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    for (int64_t i = 0; i < top; ++i) {
      const int64_t expert = order[static_cast<size_t>(i)];
      out.chosen.push_back(expert);
      flat.push_back(t * E + expert);
      shares[static_cast<size_t>(expert)] += 1 / static_cast<float>(std::max<int64_t>(T * top, 1));
    }
  }
  const Tensor picked = reshape(index_select(reshape(probabilities, {T * E}), 0, Tensor::from(flat, {T * top}, logits.device())), {T, top});
  out.factors = picked / sum(picked, {1}, true);
  out.balance = sum(Tensor::from(shares, {E}, logits.device()) * mean(probabilities, {0})) * static_cast<float>(E);
  return out;
}

void BalanceLosses::add(const Tensor& loss) {
  if (newest_) newest_->sum_ = newest_->sum_.defined() ? newest_->sum_ + loss : loss;
}

Tensor FeedForward::operator()(const Tensor& x, Mode mode) const {
  if (!experts.empty()) return mix_experts(*this, x, mode);
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
  if (options.experts > 0) {
    check(1 <= options.top && options.top <= options.experts, "feed_forward: ", options.top, " of ", options.experts,
          " experts per token, expected 1 to all");
    out.router = Linear(scope / "router", width, options.experts, {.bias = false});
    out.top = options.top;
    out.balance = options.balance;
    FeedForwardOptions one = options;
    one.experts = 0;
    for (int64_t i = 0; i < options.experts; ++i) out.experts.push_back(make_feed_forward(scope / "experts" / i, one));
    return out;
  }
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
