// The arithmetic of one attention, told from the shapes of its projections.
#pragma once

#include <array>
#include <map>
#include <string>

#include "heed/models/config.h"
#include "heed/models/cost.h"

namespace heed {

std::vector<std::string> name_words(const std::string& name);  // what stands between its dots
bool is_one_of(const std::string& word, std::initializer_list<const char*> words);

// Where the attention lies that a part belongs to: "h.0.attn" of "h.0.attn.c_attn". Empty: it belongs to none.
std::string attention_path(const std::string& name);

struct AttentionShape {
  int64_t width = 0;                                  // of tokens
  int64_t query = 0, key = 0, value = 0, output = 0;  // H D, G D, G E, H E; 0: not projected
  bool relative = false;                              // queries meet vectors of distances too
  int64_t N = 0, M = 0;                               // queries, keys
  bool self = true, causal = false, drops = false;    // drops: weights, by chance
  std::array<int64_t, 2> grid = {};                   // of pictures: rows, columns

  void see(const ModelPart& part);  // one of its projections
  int64_t cached() const;           // numbers that a cache keeps of a token
};

// Of scores and weighted sums for one item, of the pairs that the config's masks let through.
struct AttentionWork {
  int64_t forward = 0, backward = 0;
};

// seen_pairs() of one model: layers that are alike are counted once.
class PairCounter {
 public:
  int64_t operator()(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer);

 private:
  std::map<std::array<int64_t, 4>, int64_t> known_ = {};
};

AttentionWork attention_work(const AttentionShape& at, const Config& config, const std::string& path, PairCounter& pairs_of);

}  // namespace heed
