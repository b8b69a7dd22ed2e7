// Finds the first tensor with a NaN or infinity after the loss diverged.
#pragma once

#include "heed/train/task.h"

namespace heed {

// Checks the inputs, the parameters, the outputs of a forward pass repeated with the same random numbers, in layer order, and the gradients
// from the last layer to the first. Returns for example "hidden_states.3 holds nan (everything before it is finite)".
std::string first_not_finite(const Task& task, const Batch& batch, Rng rng);

bool all_finite(const std::vector<Parameter>& parameters);

}  // namespace heed
