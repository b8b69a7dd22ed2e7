// Decoder-only language models: the parts shared by GPT-2 and Llama.
#pragma once

#include "heed/models/parts.h"

namespace heed {

struct CausalModel {
  Embedding word_embeddings;
  AddedPositions positions;  // added to word embeddings; empty for rotary models
  std::vector<EncoderLayer> layers;
  Norm norm;
  Linear head;        // (V, D); undefined: the network returns last_hidden_state
  float dropout = 0;  // of embeddings
};

// Inputs: input_ids, attention_mask, position_ids, labels, and token_type_ids if positions are added to embeddings.
Network causal_network(const CausalModel& model);

}  // namespace heed
