// Which tensor went wrong first when a loss is not a number.
#pragma once

#include "heed/train/task.h"

namespace heed {

// Looks at the inputs, the parameters, then the states of the model in the order of its layers, computed again with the same chance,
// then at gradients from the last layer to the first. -> "hidden_states.3 holds nan (everything before it is finite)", for example
std::string first_not_finite(const Model& model, const Batch& batch, Rng rng);

bool all_finite(const std::vector<Parameter>& parameters);

}  // namespace heed
