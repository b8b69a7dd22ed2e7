// Sentences as vectors (Reimers and Gurevych 2019): what an encoder says about the tokens, pooled and brought to length 1, so that
// the product of two is their cosine.
#pragma once

#include "heed/models/text_model.h"

namespace heed {

enum class SentencePooling { mean, first, largest };              // of the tokens that are no padding; first: [CLS]
SentencePooling sentence_pooling_named(const std::string& name);  // "mean", "cls", "max"

struct EmbedOptions {
  SentencePooling pooling = SentencePooling::mean;
  bool normalize = true;
  int64_t max_length = 0;  // tokens; 0: as many as the model can read
};
// As the folder's files of sentence-transformers say: modules.json, 1_Pooling/config.json, sentence_bert_config.json; as above
// where there are none.
EmbedOptions embed_options(const Path& folder);

// The encoder of any checkpoint, without its head.
TextModel load_embedder(const Path& folder, Weights weights = Weights::packed, const Warn& allow_nonfinite = {});

// -> (B, D), in the order of the sentences. done: called after every batch with the number of its sentences
Tensor embed(const TextModel& model, std::span<const Encoding> encodings, const EmbedOptions& options = {},
             const std::function<void(int64_t sentences)>& done = {});
Tensor embed(const TextModel& model, std::span<const Sentence> sentences, const EmbedOptions& options = {});

}  // namespace heed
