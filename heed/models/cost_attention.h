// Multiply-adds of one attention module, derived from the shapes of its projections.
#pragma once

#include <array>
#include <map>
#include <string>

#include "heed/models/config.h"
#include "heed/models/cost.h"

namespace heed {

std::vector<std::string> name_parts(const std::string& name);  // split at dots
bool is_one_of(const std::string& part, std::initializer_list<const char*> choices);

// The attention module that a part belongs to: "h.0.attn" for "h.0.attn.c_attn". Empty: none.
std::string attention_path(const std::string& name);

struct AttentionShape {
  int64_t width = 0;                                  // of tokens
  int64_t query = 0, key = 0, value = 0, output = 0;  // H D, G D, G E, H E; 0: not projected
  int64_t N = 0, M = 0;                               // queries, keys
  bool self = true, causal = false, drops = false;    // drops: dropout of attention weights
  std::array<int64_t, 2> grid = {};                   // of images: rows, columns

  void add_projection(const ModelPart& part);
  int64_t cached() const;  // numbers per token in a key-value cache
};

// Multiply-adds of scores and weighted sums for one item, over the pairs that the masks leave visible.
struct AttentionWork {
  int64_t forward = 0, backward = 0;
};

// Caches count_visible_pairs() for the layers of one model.
class PairCounter {
 public:
  int64_t operator()(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer);

 private:
  std::map<std::array<int64_t, 4>, int64_t> known_ = {};
};

AttentionWork attention_work(const AttentionShape& at, const Config& config, const std::string& path, PairCounter& pairs_of);

}  // namespace heed
