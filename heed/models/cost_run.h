// The memory of running a model on example inputs, predicted by a dry run, and time, memory and multiply-adds as measured.
#pragma once

#include "heed/core/api.h"
#include "heed/models/cost.h"

namespace HEED_API heed {

struct MemoryCost {
  int64_t weights = 0;      // bytes of the weights in memory: packed for inference
  int64_t activations = 0;  // peak of inputs and everything else, in training including the gradients allocated by then
  int64_t gradients = 0;    // allocated after a training step
};

// Memory of a call with inputs of that size, from a dry run. size: without zeros
MemoryCost predicted_memory(const Model& model, const InputSize& size, Purpose purpose);

struct MeasuredCost {
  MemoryCost memory = {};
  int64_t multiply_adds = 0;  // as the ops count them (core/work_count.h)
  double seconds = 0;         // median of all rounds
};
MeasuredCost measured_cost(const Model& model, const InputSize& size, Purpose purpose, int rounds = 5);

}  // namespace heed
