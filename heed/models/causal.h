// Decoder-only language models: what GPT-2 and Llama have in common.
#pragma once

#include "heed/models/parts.h"

namespace heed {

struct CausalModel {
  Embedding words;
  AddedPositions positions;  // to words; none where layers turn queries and keys
  std::vector<EncoderLayer> layers;
  Norm norm;
  Linear head;        // (V, D); undefined: the network gives its last states alone
  float dropout = 0;  // of words
};

// Inputs: input_ids, attention_mask, position_ids, labels, and token_type_ids where positions are added to words.
Network causal_network(const CausalModel& model);

}  // namespace heed
