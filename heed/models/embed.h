// Sentence embeddings (Reimers and Gurevych 2019): the token states of an encoder, pooled and normalized to length 1, so that the
// dot product of two is their cosine.
#pragma once

#include "heed/core/api.h"
#include "heed/models/text_model.h"

namespace HEED_API heed {

enum class SentencePooling { mean, first, largest };              // over tokens without padding; first: [CLS]
SentencePooling sentence_pooling_named(const std::string& name);  // "mean", "cls", "max"

// How token states become one vector. normalize: to length 1
struct EmbedOptions {
  SentencePooling pooling = SentencePooling::mean;
  bool normalize = true;
  int64_t max_length = 0;  // tokens; 0: the model's maximum
};
// From the sentence-transformers files of a folder: modules.json, 1_Pooling/config.json, sentence_bert_config.json. The defaults
// above if there are none.
EmbedOptions embed_options(const Path& folder);

// The encoder of any checkpoint, without its head.
TextModel load_embedder(const Path& folder, Weights weights = Weights::packed, const Warn& allow_nonfinite = {});

// Pooled and normalized. states: (B, N, D), lengths: B numbers -> (B, D)
Tensor pool_sentences(const Tensor& states, std::span<const int64_t> lengths, const EmbedOptions& options);

// -> (B, D), in the order of the sentences. done: called after every batch with the number of its sentences
Tensor embed(const TextModel& model, std::span<const Encoding> encodings, const EmbedOptions& options = {},
             const std::function<void(int64_t sentences)>& done = {});
Tensor embed(const TextModel& model, std::span<const Sentence> sentences, const EmbedOptions& options = {});

}  // namespace heed
