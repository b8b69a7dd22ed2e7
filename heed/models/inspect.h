// Attention maps of one input, selected by layer and head, and attention rollout over the layers.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/image.h"
#include "heed/models/model.h"

namespace HEED_API heed {

// Which layers and heads; empty: all.
struct MapChoice {
  std::vector<int64_t> layers = {}, heads = {};
};

// The maps of one kind of attention for one input. Rows are queries and sum to 1.
struct AttentionMaps {
  std::string kind = {};                             // "attention", or "encoder", "decoder" and "cross" of a translation
  std::vector<int64_t> layers = {}, heads = {};      // selected
  int64_t all_layers = 0, all_heads = 0;             // of the model
  int64_t N = 0, M = 0;                              // queries, keys
  std::vector<float> weights = {};                   // (layers, heads, N, M)
  std::vector<std::string> rows = {}, columns = {};  // names of queries and keys; filled by the caller

  std::span<const float> map(size_t layer, size_t head) const;  // indices into the two lists -> (N, M)
  std::vector<float> mean(size_t layer) const;                  // over the selected heads -> (N, M)
  bool causal() const;                                          // no query attends to a later key
};

// The maps of the first item of a batch. outputs: of a call with ForwardOptions::attentions. prefix: "attentions.",
// "cross_attentions." ... Layers and heads out of range are a UsageError; with `lenient`, such layers are ignored.
AttentionMaps maps_in(const TensorMap& outputs, const std::string& prefix, const std::string& kind, const MapChoice& choice,
                      bool lenient = false);

// Divides every row by its largest weight, for drawing: the first rows of a causal map have few keys with large weights and would
// leave the others dark. map: (N, M)
std::vector<float> scaled_by_row(std::span<const float> map, int64_t M);

// Whether the model's kind of attention has maps: linear and channel attention have none.
bool has_maps(const Model& model);

// The rows and columns of patches that a vision transformer cuts an image into.
std::array<int64_t, 2> patch_grid(const Model& model, const Image& image);
// The attention of the class token to patches, or the mean over all queries if there is none. map: (N, N); the last tokens are patches
std::vector<float> patches_seen(std::span<const float> map, int64_t N, int64_t patches);

// Attention rollout (Abnar and Zuidema 2020): the product over all layers of (I + mean attention of the heads) / 2.
// -> (N, N), rows sum to 1
std::vector<float> rollout(const TensorMap& outputs, const std::string& prefix);

}  // namespace heed
