// Where the heads of a model look: the maps of one input, chosen by layer and head, and what they add up to over the layers.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "heed/io/picture.h"
#include "heed/models/model.h"

namespace heed {

// Which layers and heads; empty: all.
struct MapChoice {
  std::vector<int64_t> layers = {}, heads = {};
};

// The maps of one kind of attention for one input. Rows are queries and sum to 1.
struct AttentionMaps {
  std::string kind = {};                             // "attention", or "encoder", "decoder" and "cross" of a translation
  std::vector<int64_t> layers = {}, heads = {};      // those that are here
  int64_t all_layers = 0, all_heads = 0;             // of the model
  int64_t N = 0, M = 0;                              // queries, keys
  std::vector<float> weights = {};                   // (layers, heads, N, M)
  std::vector<std::string> rows = {}, columns = {};  // what queries and keys are called; whoever draws fills them

  std::span<const float> map(size_t layer, size_t head) const;  // places in the two lists; (N, M)
  std::vector<float> mean(size_t layer) const;                  // over the heads that are here; (N, M)
  bool causal() const;                                          // no query sees a key behind it
};

// outputs: of a call with Ask::attentions. prefix: "attentions.", "cross_attentions." ... Of a batch, the first item. Layers and
// heads that the model lacks are a UsageError; with `lenient`, layers that it lacks are left out.
AttentionMaps maps_in(const Named& outputs, const std::string& prefix, const std::string& kind, const MapChoice& choice,
                      bool lenient = false);

// Every row by its own largest weight. The first rows of a causal map have few keys, each with a large weight; on one scale for the whole
// map they leave the others dark. map: (N, M)
std::vector<float> scaled_by_row(std::span<const float> map, int64_t M);

// Whether the model's kind of attention has maps to give: kernel and channel attention have none.
bool has_maps(const Model& model);

// The rows and columns of patches that a vision transformer cuts a picture into.
std::array<int64_t, 2> patch_grid(const Model& model, const Picture& picture);
// What the class token sees of patches, or all of them on average where there is none. map: (N, N), of which the last tokens are patches
std::vector<float> patches_seen(std::span<const float> map, int64_t N, int64_t patches);

// Attention rollout (Abnar and Zuidema 2020): how much of every token at the beginning is in every token at the end, if a layer
// gives half of each token to the residual and half to where its heads look on average. All layers and heads of the model.
// -> (N, N), rows sum to 1
std::vector<float> rollout(const Named& outputs, const std::string& prefix);

}  // namespace heed
