// Parts of BERT that other models contain.
#pragma once

#include "heed/models/heads.h"

namespace heed {

// config: of a BERT
LayerOptions bert_layer_options(const Config& config);
// The head for tokens below "cls.predictions". shared: with the word embeddings, (V, D)
TokenHead bert_token_head(const Scope& scope, const Config& config, const Embedding& words, bool shared);

}  // namespace heed
