// A model that reads text, with its tokenizer: sentences in, outputs of batches out.
#pragma once

#include <functional>

#include "heed/models/model.h"
#include "heed/text/batches.h"

namespace heed {

struct TextModel {
  Model model;
  Tokenizer tokenizer;
  Path folder;          // where both came from, for messages
  int64_t most_tokens;  // that the model can read at once
};

// From a folder with a checkpoint and a tokenizer. The model must have a vector for every token.
TextModel load_text_model(const Path& folder, const ModelOptions& options = {});
TextModel with_tokenizer(Model model, const Path& folder);  // of that folder

// Cut to what the model can read, or to fewer tokens. 0: as many as it can read
EncodedSentences encode_sentences(const TextModel& model, std::span<const Sentence> sentences, int64_t max_length = 0);

struct TextBatch {
  std::vector<size_t> places;    // of its B sentences among all
  std::vector<int64_t> lengths;  // tokens of each; what follows in its row is padding
  Named out;                     // what the model gave
};
// Sentences in batches of like length; `use` sees each of them. Outputs that are not finite are a NonfiniteOutput, whose item is the
// place of the sentence.
void each_batch(const TextModel& model, std::span<const Encoding> encodings, const std::function<void(const TextBatch& batch)>& use);

}  // namespace heed
