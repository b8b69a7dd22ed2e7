// Optimizers. A step is one parallel pass over all parameters. Parameters without a gradient are skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

// Parameters with the same weight decay: norms, biases and positions usually have none.
struct ParameterGroup {
  Tensors parameters;
  float weight_decay = 0;
};

struct SgdOptions {
  float momentum = 0;
  bool nesterov = false;
};

// v = momentum v + (g + decay w);  w -= rate v
class Sgd {
 public:
  Sgd(std::vector<ParameterGroup> groups, SgdOptions options);
  void step(float rate);
  void zero_grad() const;
  Tensors state() const;  // momentum buffers, for checkpoints

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<Tensors> velocity_;  // one per parameter; empty without momentum
  SgdOptions options_;
};

struct AdamOptions {
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
  bool decoupled = true;  // true: AdamW (Loshchilov and Hutter 2019); false: Adam (Kingma and Ba 2015), decay added to the gradient
};

// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
class Adam {
 public:
  Adam(std::vector<ParameterGroup> groups, AdamOptions options);
  void step(float rate);
  void zero_grad() const;
  Tensors state() const;  // first moments of all parameters, then second moments; steps() is saved separately
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<Tensors> first_, second_;  // moments, one per parameter
  AdamOptions options_;
  int64_t steps_ = 0;
};

// Returns the L2 norm over all gradients, and scales them down to `limit` if it is larger.
float clip_gradients(const Tensors& parameters, float limit);

// averages += share (parameters - averages): exponential moving average of weights (Polyak and Juditsky 1992).
void update_averages(const Tensors& averages, const Tensors& parameters, float share);

// Both must be dense f32 tensors of the same shape. Allocates nothing, so a destructor may call it.
void swap_values(const Tensor& a, const Tensor& b);

}  // namespace heed
