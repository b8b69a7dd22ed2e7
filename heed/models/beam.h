// Beam search: the most likely whole sequence instead of the most likely next token.
#pragma once

#include "heed/models/generate.h"

namespace heed {

struct Beams {
  Tensor tokens;              // (B count, L) i64 including the prompt; the best of each input first
  std::vector<float> scores;  // B count: the sum of log-probabilities / (generated tokens)^length_penalty
};

// The algorithm of `transformers`: every step takes more of the best continuations of all beams than there are beams, so that
// enough are left when some end. inputs: as for generate
Beams beam_search(const Model& model, const TensorMap& inputs, const GenerationOptions& options);

}  // namespace heed
