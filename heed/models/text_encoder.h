// Encoders of text: the parts shared by BERT, RoBERTa, DistilBERT and ModernBERT.
#pragma once

#include "heed/models/heads.h"

namespace heed {

struct TextEncoder {
  Embedding word_embeddings;
  Embedding segment_embeddings = {};       // by token_type_ids; undefined: none
  AddedPositions positions = {};           // added to word embeddings; empty for rotary models
  std::optional<int64_t> padding_id = {};  // if set, positions count only other tokens and begin at padding_id + 1 (RoBERTa)
  Norm norm;
  std::vector<EncoderLayer> layers = {};
  Norm last = {};  // final norm of pre-norm layers
  float dropout = 0;
  bool causal = false;

  int64_t width() const { return word_embeddings.weight.size(1); }
  // (B, N) -> (B, N, D). With `labels` (B, N), the head reads only the first token and those with labels: the result may be (B, n, D)
  // and labels (B, n).
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, Tensor* labels = nullptr) const;
};

// The tokens whose states a head reads. If only the loss is wanted, the last layer computes no others.
enum class Reads { all, first, labelled };
// Those that a pooled sentence reads.
inline Reads reads_of(const Pool& pool) { return pool.kind == Pooling::class_token ? Reads::first : Reads::all; }

// Inputs: input_ids, attention_mask, position_ids, token_type_ids if there are segments, and those of the head.
Network text_network(const TextEncoder& encoder, Reads reads, const Head& head, const std::vector<std::string>& head_inputs = {"labels"});

}  // namespace heed
