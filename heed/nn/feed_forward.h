// Two linear layers with an activation between them (Vaswani et al. 2017), or three with a gate (Shazeer 2020).
#pragma once

#include <map>
#include <string>

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
};

// down(activation(up(x))), or with a gate; make_feed_forward() builds it.
struct FeedForward {
  Linear up = {}, down = {};  // (W, D), (D, W); a fused up is (2 W, D)
  Linear gate = {};           // (W, D) or undefined
  Activation activation = Activation::relu;
  float dropout = 0;

  Tensor operator()(const Tensor& x, Mode mode = {}) const;  // x: (..., D) -> (..., D)
};

// Its parameters come from the scope.
FeedForward make_feed_forward(const Scope& scope, const FeedForwardOptions& options);

Tensor activate(const Tensor& x, Activation activation);

// By name, as in config.json: those of ops/activation.h, "linear", and other names of transformers for the same functions.
const std::map<std::string, Activation>& activation_names();
Activation activation_named(const std::string& name);

}  // namespace heed
