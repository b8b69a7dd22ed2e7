// Compares a model with the outputs of another program for the same parameters.
#pragma once

#include <string>
#include <vector>

#include "heed/models/model.h"

namespace heed {

struct Difference {
  std::string name;
  Shape shape;               // expected
  double absolute = 0;       // largest absolute difference
  double relative = 0;       // absolute / largest expected value
  bool within = false;       // the tolerance; integers must be equal
  std::string problem = {};  // why the two could not be compared
};

// Runs the model on the tensors "in.*" of a file and compares each "out.*" with the output of that name: "out.logits",
// "out.hidden_states.0" ... "out.greedy" are greedily generated tokens, "out.beam4" those of beam search with 4 beams.
std::vector<Difference> compare(const Model& model, const Path& file, double tolerance);

}  // namespace heed
