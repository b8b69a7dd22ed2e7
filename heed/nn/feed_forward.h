// Two linear layers with an activation between them (Vaswani et al. 2017), or three with a gate (Shazeer 2020); or several such blocks, of
// which each token uses a few (mixture of experts, Shazeer et al. 2017).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/nn/linear.h"
#include "heed/nn/mode.h"

namespace HEED_API heed {

// Parameter names.
struct FeedForwardNames {
  std::string_view up = "up", gate = "gate", down = "down";
};

// Options of a feed-forward block, with D = width and W = hidden_width.
struct FeedForwardOptions {
  int64_t width = 0;         // of x and the output
  int64_t hidden_width = 0;  // between the layers; 0: 4 width
  Activation activation = Activation::relu;
  bool gated = false;  // down(activation(gate(x)) up(x))
  bool fused = false;  // gate and up are one layer "up", (2 W, D), the gate first
  bool bias = true;
  float dropout = 0;               // between the layers
  bool stored_transposed = false;  // files store weights as (I, O), as GPT-2 does
  FeedForwardNames names = {};
  int64_t experts = 0;    // 0: none; otherwise so many blocks, of which each token uses `top`
  int64_t top = 2;        // experts per token
  float balance = 0.01f;  // factor of the load-balance loss
};

// down(activation(up(x))), or with a gate; make_feed_forward() builds it.
struct FeedForward {
  Linear up = {}, down = {};  // (W, D), (D, W); a fused up is (2 W, D)
  Linear gate = {};           // (W, D) or undefined
  Activation activation = Activation::relu;
  float dropout = 0;
  Linear router = {};                     // (E, D); undefined: no experts
  std::vector<FeedForward> experts = {};  // E blocks, which replace up, gate and down
  int64_t top = 2;
  float balance = 0.01f;

  Tensor operator()(const Tensor& x, Mode mode = {}) const;  // x: (..., D) -> (..., D)
};

// Which experts each token uses, and with which factors.
struct Routing {
  std::vector<int64_t> chosen = {};  // (T, k): experts with the largest probabilities, the first of equal ones first
  Tensor factors;                    // (T, k): their probabilities divided by their sum
  Tensor balance;                    // (): E sum over experts of (share of choices) (mean probability); 1 if both are uniform
};
Routing route(const Tensor& logits, int64_t top);  // logits: (T, E)

// While one of these lives, the mixtures of experts that this thread trains add their load-balance losses (Fedus et al. 2022) here.
class BalanceLosses {
 public:
  BalanceLosses() : outer_(newest_) { newest_ = this; }
  ~BalanceLosses() { newest_ = outer_; }
  BalanceLosses(const BalanceLosses&) = delete;
  BalanceLosses& operator=(const BalanceLosses&) = delete;

  const Tensor& sum() const { return sum_; }  // () or undefined
  static void add(const Tensor& loss);        // to the newest of this thread

 private:
  static inline thread_local BalanceLosses* newest_ = nullptr;

  Tensor sum_ = {};
  BalanceLosses* outer_;
};

// Its parameters come from the scope.
FeedForward make_feed_forward(const Scope& scope, const FeedForwardOptions& options);

Tensor activate(const Tensor& x, Activation activation);  // x: any shape -> the same shape

// By name, as in config.json: those of ops/activation.h, "linear", and other names of transformers for the same functions.
const std::map<std::string, Activation>& activation_names();
Activation activation_named(const std::string& name);

}  // namespace heed
