// Rotary positions as config.json describes them, with the scalings of `transformers` for texts that are longer than in training.
#pragma once

#include "heed/models/config.h"
#include "heed/nn/positions.h"

namespace heed {

// The object "rope_scaling" or "rope_parameters" of config.json; empty if it has neither.
Config rope_in(const Config& config);

// The longest text: max_position_embeddings, or what the scaling extends it to.
int64_t rope_positions(const Config& config, int64_t fallback);

// The rotation of heads of D features. rope: with rope_type, rope_theta, factor and so on; theta: unless rope or config have rope_theta
Rotary rotary_from(const Config& config, const Config& rope, int64_t D, int64_t positions, float theta = 10000);

}  // namespace heed
