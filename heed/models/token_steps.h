// Decoding that stays on its device, greedily or with sampling: each step reads the token that the previous step chose from device memory,
// so that one CUDA graph is launched for every step, and the host reads the tokens later.
#pragma once

#include <optional>

#include "heed/attention/cached_attention.h"
#include "heed/core/captured_step.h"
#include "heed/models/causal.h"
#include "heed/models/sample.h"
#include "heed/ops/next_token.h"
#include "heed/ops/row_linear.h"

namespace heed {

struct TokenStepsOptions {
  int64_t max_length = 0;         // of a sequence, prompt included
  DType precision = DType::bf16;  // of weights that are not int8, keys and values
  std::optional<Sampling> sampling = {};
};

class TokenSteps {
 public:
  // logits: of the token after `state`
  TokenSteps(const CausalModel& model, const DecodeState& state, const Tensor& logits, const TokenStepsOptions& options);

  // The next `count` tokens of every sequence, one row of B for each; -1: the logits are not finite.
  std::vector<std::vector<int64_t>> next(int64_t count);
  const Tensor& logits() const { return logits_; }  // (B, V), of the last step

 private:
  struct Layer {
    RowLayer qkv, output, up, gate, down;  // without a gate its weight is undefined
    CachedHeads heads;
    std::optional<Rotary> rotary;
    Tensor projected, attended, hidden;  // (B, (H + 2 G) D), (B, H D), (B, W)
  };

  void compute();  // one step
  void choose();   // the next tokens, by the logits
  void grow();     // the capacity of the caches

  Tensor table_, positions_;  // of tokens; positions_ may be undefined
  std::vector<Layer> layers_ = {};
  RowLayer head_;
  TokenStepsOptions options_;
  int64_t prompt_, length_, capacity_ = 0, read_ = 0;  // length_: tokens in the cache after the steps that were launched
  WrittenTokens written_ = {};
  Tensor x_, logits_;  // (B, D), (B, V)
  std::optional<CapturedStep> step_ = {};
};

// Null if the kernels of a step do not support a part of the model or the number of sequences.
std::shared_ptr<TokenSteps> token_steps(const CausalModel& model, const DecodeState& state, const Tensor& logits,
                                        const TokenStepsOptions& options);

}  // namespace heed
