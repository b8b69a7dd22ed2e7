// What writing token by token and writing with beams share: how texts begin, and which scores the rules change.
#pragma once

#include <algorithm>

#include "heed/models/generate.h"

namespace heed {

using TokenRow = std::vector<int64_t>;

inline bool holds(const TokenRow& row, int64_t token) { return std::find(row.begin(), row.end(), token) != row.end(); }

class GenerationRules {
 public:
  GenerationRules(const GenerationOptions& options, int64_t began);  // began: the number of tokens that texts begin with

  bool none() const;                                                // no rule ever changes a score
  void apply(std::span<float> scores, const TokenRow& text) const;  // scores: V numbers, of what may follow the text

  int64_t began() const { return began_; }
  int64_t longest() const { return longest_; }
  bool ends(int64_t token) const { return holds(options_.end, token); }

 private:
  const GenerationOptions& options_;
  int64_t began_, longest_, shortest_;
};

struct BegunTexts {
  std::vector<TokenRow> tokens;  // B texts
  Writing writing;
  Tensor logits = {};  // (B, V): of what may follow
};
BegunTexts begin_texts(const Model& model, const Named& inputs, const GenerationOptions& options);

// The one row after the other. rows: of equal lengths -> (rows, length)
Tensor tensor_of(const std::vector<TokenRow>& rows);

}  // namespace heed
