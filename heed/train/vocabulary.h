// The tokenizer of a text task: from the initial model, or trained on the task's texts.
#pragma once

#include <map>

#include "heed/text/tokenizer.h"
#include "heed/text/train_vocabulary.h"
#include "heed/train/tasks.h"

namespace heed {

// For models from scratch.
struct VocabularyOptions {
  std::string kind = "wordpiece";  // bpe, words, characters
  int64_t size = 8000;
  bool lowercase = true;
};
void declare(Settings& settings, VocabularyOptions& options);

struct TaskTokenizer {
  Tokenizer tokenizer;
  std::map<std::string, std::string> files;  // file name -> contents, for the model folder

  void save(const Path& folder) const;
};

// ends: for models that generate text, append "</s>" to texts and add "<pad>".
TaskTokenizer tokenizer_for(const JobOptions& chosen, const VocabularyOptions& options, std::span<const std::string> texts,
                            bool ends = false);

// Some of the texts as a batch for the model: input_ids, attention_mask (B, N) and, if it has segments, token_type_ids
TensorMap text_inputs(const Model& model, const Tokenizer& tokenizer, const std::vector<Encoding>& texts, std::span<const int64_t> which);

// inputs: one text
TrackedSample tracked_text(const TensorMap& inputs, const Tokenizer& tokenizer);

// The token that ends a text in models that generate one, or in CLIP.
std::optional<int32_t> end_token(const Tokenizer& tokenizer);

// Sets vocab_size and the ids of padding, start and end tokens in config.json, under the architecture's key names.
void set_vocabulary(Json& config, const Tokenizer& tokenizer);

}  // namespace heed
