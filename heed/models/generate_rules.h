// Shared by token-by-token generation and beam search: processing the prompt, and the rules that change scores.
#pragma once

#include <algorithm>

#include "heed/models/generate.h"

namespace heed {

using TokenRow = std::vector<int64_t>;

inline bool contains(const TokenRow& row, int64_t token) { return std::find(row.begin(), row.end(), token) != row.end(); }

class GenerationRules {
 public:
  GenerationRules(const GenerationOptions& options, int64_t prompt_length);

  bool none() const;                                                    // no rule ever changes a score
  void apply(std::span<float> scores, const TokenRow& sequence) const;  // scores: V numbers, of the token after the sequence

  int64_t prompt_length() const { return prompt_length_; }
  int64_t max_length() const { return max_length_; }
  bool ends(int64_t token) const { return contains(options_.end, token); }

 private:
  const GenerationOptions& options_;
  int64_t prompt_length_, max_length_, min_length_;
};

struct DecodeBatch {
  std::vector<TokenRow> tokens;  // B sequences
  DecodeState state;
  Tensor logits = {};  // (B, V): of the next token
};
// Runs the prompts, or the encoder and the start token.
DecodeBatch prefill(const Model& model, const TensorMap& inputs, const GenerationOptions& options);

// rows: of equal length -> (rows, length)
Tensor tensor_of(const std::vector<TokenRow>& rows);

}  // namespace heed
