// Heads that several architectures have: masked tokens, classes of tokens and of sequences, answers in a text.
#pragma once

#include "heed/models/parts.h"
#include "heed/nn/pooling.h"

namespace heed {

// The arguments of a head: those of the call, the states x (B, N, D), or (B, n, D) of only the tokens that it reads, and their labels.
struct HeadInput {
  const TensorMap& inputs;
  const ForwardOptions& options;
  const Tensor& x;
  const Tensor& labels;  // undefined if there are none
};
using Head = std::function<void(const HeadInput& in, TensorMap& out)>;  // adds its outputs to `out`
using SentencePooler = std::function<Tensor(const HeadInput& in)>;      // -> (B, D)

// Tokens for masks: a dense layer with activation and norm, then a product with the word embeddings.
struct TokenHead {
  Linear transform;
  Norm norm;
  Activation activation;
  Linear decoder = {};  // (V, D)

  Tensor states(const Tensor& x) const { return norm(transform(x, activation)); }  // (..., D) -> (..., D), for the decoder
  // Adds the output `name`, (B, N, V), and "loss" if there are labels.
  void operator()(const HeadInput& in, const Tensor& labels, TensorMap& out, const std::string& name = "logits") const;
};
Head masked_tokens(const TokenHead& head);

// A class for every token. linear: (labels, D)
Head token_classes(const Linear& linear, float dropout);

// Sentences pooled as config.json says, over the tokens that attention_mask leaves visible.
SentencePooler pooled_by(const Pool& pool);
// A class for every sequence. linear: (labels, D)
Head sequence_classes(const SentencePooler& pooled, const Linear& linear, float dropout, const Config& config);
// The state of the last token that is not padding, as decoders classify. padding_id: -1: none
SentencePooler last_token(int64_t padding_id);

// An answer is a part of the text: "start_logits" and "end_logits", (B, N), and "loss" with start_positions and end_positions, (B).
Head answer_spans(const Scope& scope, int64_t D, float dropout);
inline const std::vector<std::string> kAnswerInputs{"start_positions", "end_positions"};

}  // namespace heed
