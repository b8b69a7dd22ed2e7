// Pre-tokenizers split a text into words. Tokens never cross word boundaries.
#pragma once

#include <functional>
#include <vector>

#include "heed/io/json_reader.h"
#include "heed/text/aligned.h"

namespace heed::text {

struct Word {
  Span at;          // in the text
  int32_t id = -1;  // of an added token, never split further; -1: a word for the model
};

struct Words {
  Aligned text;
  std::vector<Word> words;
  std::vector<Word> output;   // output of the current step
  std::vector<Span> matches;  // scratch of the current step
};

struct PreTokenizer {
  std::vector<std::function<void(Words&)>> steps;
  bool byte_level = false;  // the model takes bytes; each character of its tokens encodes one

  void operator()(Words& words) const {
    for (const auto& step : steps) step(words);
  }
};

// The pre-tokenizer of a tokenizer.json: one or a sequence. Unknown types are a FileError that names them.
PreTokenizer make_pre_tokenizer(const JsonReader& json);

PreTokenizer bert_pre_tokenizer();
PreTokenizer gpt2_pre_tokenizer(bool add_prefix_space);

}  // namespace heed::text
