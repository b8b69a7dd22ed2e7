// Heads removed from a model: their rows of the query, key and value projections and their columns of the output projection. The key
// "pruned_heads" of "heed" in config.json says which.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "heed/core/api.h"
#include "heed/models/model.h"

namespace HEED_API heed {

// The number of heads of every layer, and the width of each head's queries. Models with one self-attention per layer whose heads share
// no keys; others are a FileError that says why.
struct LayerHeads {
  int64_t heads = 0, width = 0;
};
std::vector<LayerHeads> prunable_heads(const Model& model);

// The model without these heads, numbered as in prunable_heads(); every layer keeps one or more. It computes what the model computes
// with the outputs of the heads set to 0.
Model without_heads(const Model& model, const std::map<int64_t, std::vector<int64_t>>& pruned);

}  // namespace heed
