// A text model with its tokenizer: sentences in, outputs of batches out.
#pragma once

#include <functional>

#include "heed/core/api.h"
#include "heed/models/model.h"
#include "heed/text/batches.h"

namespace HEED_API heed {

// A model and the tokenizer of its folder.
struct TextModel {
  Model model;
  Tokenizer tokenizer;
  Path folder;         // for messages
  int64_t max_tokens;  // maximum length of a sequence
};

// From a folder with a checkpoint and a tokenizer. The model must have an embedding for every token.
TextModel load_text_model(const Path& folder, const ModelOptions& options = {});
TextModel with_tokenizer(Model model, const Path& folder);  // adds the tokenizer of that folder

// Truncates to max_length tokens, or to the model's maximum if it is smaller or max_length is 0.
EncodedSentences encode_sentences(const TextModel& model, std::span<const Sentence> sentences, int64_t max_length = 0);

// A batch of sentences and the model's outputs for it.
struct TextBatch {
  std::vector<size_t> places;    // indices of its B sentences in the call
  std::vector<int64_t> lengths;  // tokens without padding
  TensorMap out;                 // outputs of the model, or the result of `reduce`
};
// Runs sentences in batches of similar length, split across processes. The process that ran a batch calls `reduce` on its outputs; then
// all processes call `use` with the result. NaN or infinite outputs throw NonfiniteOutput, whose item is the index of the sentence.
void each_batch(const TextModel& model, std::span<const Encoding> encodings, const std::function<TensorMap(const TextBatch& batch)>& reduce,
                const std::function<void(const TextBatch& batch)>& use);

// Runs sentences without padding, in one call if the model takes sequences: a sentence's outputs have the same bits whatever the others
// are, if weights are packed. -> outputs (1, T, ...) for tokens, (sentences, ...) for sentences
TensorMap run_together(const TextModel& model, std::span<const Encoding> encodings);

}  // namespace heed
