// Decoder-only models: the parts shared by GPT-2 and Llama.
#pragma once

#include "heed/models/heads.h"

namespace heed {

struct CausalModel {
  Embedding word_embeddings;
  AddedPositions positions;  // added to word embeddings; empty for rotary models
  std::vector<EncoderLayer> layers;
  Norm norm;
  Linear head = {};      // (V, D), of a language model
  Head classifier = {};  // of a sequence; without any head the network returns last_hidden_state
  float dropout = 0;     // of embeddings
};

enum class CausalHead { none, language, classifier };

// Adds the head to a model: "lm_head", the word embeddings if they are shared, or "score", which classifies by the last token.
void add_head(CausalModel& model, CausalHead head, const Scope& scope, const Config& config, bool shared);

// Inputs: input_ids, attention_mask, position_ids, labels, and token_type_ids if positions are added to embeddings.
Network causal_network(const CausalModel& model);

}  // namespace heed
