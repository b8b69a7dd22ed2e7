// The cost of running a model on dummy inputs: a dry run predicts memory, a real run measures memory, time and multiply-adds.
#pragma once

#include "heed/core/api.h"
#include "heed/models/cost.h"

namespace HEED_API heed {

enum class Purpose {
  inference,  // all outputs, packed weights, no autograd
  training,   // forward and backward of the loss
};

struct MemoryCost {
  int64_t weights = 0;      // bytes of the weights in memory
  int64_t activations = 0;  // peak of inputs and everything else, in training including the gradients allocated by then
  int64_t gradients = 0;    // allocated after a training step
};

struct CostedModel {
  Json config = {};
  std::string architecture = {};  // replaces the config's unless empty
};

// Memory of a call with such inputs, without computing anything: models may be larger than the machine's memory.
MemoryCost predicted_memory(const CostedModel& model, const InputSize& size, Purpose purpose);

struct MeasuredCost {
  MemoryCost memory = {};
  int64_t multiply_adds = 0;  // as the ops count them (core/work_count.h)
  double seconds = 0;         // median of all rounds
};
MeasuredCost measured_cost(const CostedModel& model, const InputSize& size, Purpose purpose, int rounds = 5);

bool has_loss(const Model& model);  // whether it takes labels
// Black images, sequences of token 0, and labels if requested. size: without zeros
TensorMap example_inputs(const Model& model, const InputSize& size, bool labels);

}  // namespace heed
