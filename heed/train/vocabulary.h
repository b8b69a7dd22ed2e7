// The tokenizer that a text task goes with: that of the model it begins with, or one learned from the texts it learns from.
#pragma once

#include <map>

#include "heed/text/tokenizer.h"
#include "heed/text/train_vocabulary.h"
#include "heed/train/tasks.h"

namespace heed {

// How texts are cut, of a model from scratch.
struct VocabularyOptions {
  std::string kind = "wordpiece";  // bpe, words, characters
  int64_t size = 8000;
  bool lowercase = true;
};
void declare(Settings& settings, VocabularyOptions& options);

struct TaskTokenizer {
  Tokenizer tokenizer;
  std::map<std::string, std::string> files;  // name -> contents, for the model's folder

  void save(const Path& folder) const;
};

// ends: texts of models that write get "</s>" behind them, and there is a "<pad>".
TaskTokenizer tokenizer_for(const Chosen& chosen, const VocabularyOptions& options, std::span<const std::string> texts, bool ends = false);

// The sample that the event file follows. inputs: of one text
Followed followed_text(const Named& inputs, const Tokenizer& tokenizer);

// config.json's numbers that follow from the tokenizer: vocab_size and the ids of padding, beginning and end, whatever the architecture
// calls them.
void set_vocabulary(Json& config, const Tokenizer& tokenizer);

}  // namespace heed
