// Optimizers. One step is one parallel pass over all parameters at once. Parameters without a gradient do not change.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// Parameters that share a weight decay: norms, biases and positions usually take none.
struct ParameterGroup {
  Tensors parameters;
  float weight_decay = 0;
};

// Gradient clipping inside a step, by a norm that its kernel reads from device memory: gradients are scaled if the norm exceeds `limit`,
// and the step changes nothing if it is not finite. Without a norm, gradients are used as they are.
struct Clipping {
  Tensor norm{};  // of gradient_norm()
  float limit = std::numeric_limits<float>::max();
};

// The scalars of a step in device memory (4 f32 values), which replace the arguments of step(): a step that was captured as a CUDA graph
// reads the values that set() wrote last. Undefined on the CPU.
class StepNumbersOnDevice {
 public:
  explicit StepNumbersOnDevice(Device device);
  void set(float rate, float beta1, float beta2, int64_t step, float average_share) const;
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_ = {};
};

// Options of stochastic gradient descent. nesterov: Nesterov momentum
struct SgdOptions {
  float momentum = 0;
  bool nesterov = false;
};

// v = momentum v + (g + decay w);  w -= rate v
class Sgd {
 public:
  Sgd(std::vector<ParameterGroup> groups, SgdOptions options);
  void step(float rate, const Clipping& clipping = {}, const Tensor& numbers = {});
  void zero_grad() const;
  Tensors state() const;  // what a checkpoint saves
  bool has_momentum() const { return options_.momentum != 0; }

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<Tensors> velocity_;  // as the groups' parameters; empty without momentum
  SgdOptions options_;
};

// Options of Adam and AdamW, as in the formula below.
struct AdamOptions {
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
  bool decoupled = true;  // true: AdamW (Loshchilov and Hutter 2019); false: Adam (Kingma and Ba 2015), decay inside the gradient
};

// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
class Adam {
 public:
  Adam(std::vector<ParameterGroup> groups, AdamOptions options);
  void step(float rate, const Clipping& clipping = {}, const Tensor& numbers = {});
  void zero_grad() const;
  Tensors state() const;  // what a checkpoint saves, in addition to steps(): all first moments, then all second ones
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<Tensors> first_, second_;  // the moments, as the groups' parameters
  AdamOptions options_;
  int64_t steps_ = 0;
};

// The Euclidean norm over all gradients: f32, shape (), on the device of the parameters.
Tensor gradient_norm(const Tensors& parameters);

// Returns the norm on the host, and scales all gradients in place if it exceeds `limit`. Optimizers can clip inside their step (Clipping).
float clip_gradients(const Tensors& parameters, float limit);

// averages += share (parameters - averages): a moving average of weights (Polyak and Juditsky 1992). Nothing changes if there is a
// `norm` that is not finite.
void update_averages(const Tensors& averages, const Tensors& parameters, float share, const Tensor& norm = {}, const Tensor& numbers = {});

// Exchanges the values of two dense f32 tensors of one shape. Allocates nothing, so that a destructor may call it.
void swap_values(const Tensor& a, const Tensor& b);

}  // namespace heed
