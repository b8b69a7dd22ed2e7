// A model held against what another program computed with the same parameters.
#pragma once

#include <string>
#include <vector>

#include "heed/models/model.h"

namespace heed {

struct Difference {
  std::string name;
  Shape shape;               // of what was expected
  double absolute = 0;       // the largest
  double relative = 0;       // the same beside the largest value that was expected
  bool within = false;       // the tolerance; whole numbers must be equal
  std::string problem = {};  // where the two could not be compared
};

// Feeds the tensors "in.*" of a file to the model and compares each "out.*" with what the model gives under that name:
// "out.logits", "out.hidden_states.0" ... "out.greedy" are the tokens that it writes, "out.beam4" those that 4 beams write.
std::vector<Difference> compare(const Model& model, const Path& file, double tolerance);

}  // namespace heed
