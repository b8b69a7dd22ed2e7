// Running a model for what it costs, on inputs that mean nothing: dry for the memory it would take, and really for memory, time and work.
#pragma once

#include "heed/models/cost.h"

namespace heed {

enum class Purpose {
  inference,  // a call that gives everything, weights packed, nothing recorded
  training,   // forward and backward to the loss alone
};

struct MemoryCost {
  int64_t weights = 0;  // bytes of the model, as it computes with them
  int64_t activations =
      0;                  // the most that inputs and all else take at the same time; in training with the gradients that are there by then
  int64_t gradients = 0;  // what training leaves
};

struct CostedModel {
  Json config = {};
  std::string architecture = {};  // in place of the config's, unless empty
};

// What a call with such inputs would take, told without computing anything: models may be larger than the machine.
MemoryCost predicted_memory(const CostedModel& model, const InputSize& size, Purpose purpose);

struct MeasuredCost {
  MemoryCost memory = {};
  int64_t multiply_adds = 0;  // as the ops count them (core/work_count.h)
  double seconds = 0;         // the median of all rounds
};
MeasuredCost measured_cost(const CostedModel& model, const InputSize& size, Purpose purpose, int rounds = 5);

bool has_loss(const Model& model);  // whether it takes labels
// Pictures without light, texts of token 0; labels where they are asked for. size: settled
Named example_inputs(const Model& model, const InputSize& size, bool labels);

}  // namespace heed
