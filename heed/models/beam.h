// The search with beams: the likeliest whole text instead of the likeliest next token.
#pragma once

#include "heed/models/generate.h"

namespace heed {

struct Beams {
  Tensor tokens;              // (B count, L) i64: of every text the best first, with all that they begin with
  std::vector<float> scores;  // B count: the sum of log-probabilities over (tokens written)^length_penalty
};

// As `transformers` does it. At every step the best continuations of all beams of a text are taken, more of them than there
// are beams, so that enough go on when some end. inputs: as for generate
Beams beam_search(const Model& model, const Named& inputs, const GenerationOptions& options);

}  // namespace heed
