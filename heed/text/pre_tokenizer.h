// Pre-tokenizers cut a text into words. No token ever reaches over the end of a word.
#pragma once

#include <functional>
#include <vector>

#include "heed/text/aligned.h"
#include "heed/text/json_part.h"

namespace heed::text {

struct Word {
  Span at;          // in the text
  int32_t id = -1;  // of an added token, which nothing cuts further; -1: a word for the model
};

struct Words {
  Aligned text;
  std::vector<Word> words;
  std::vector<Word> made;     // by the step at work
  std::vector<Span> matches;  // likewise
};

struct PreTokenizer {
  std::vector<std::function<void(Words&)>> steps;
  bool byte_level = false;  // the model takes bytes; each character of its tokens stands for one

  void operator()(Words& words) const {
    for (const auto& step : steps) step(words);
  }
};

// The pre-tokenizer of a tokenizer.json: one or a sequence. Kinds that heed does not know are refused by name.
PreTokenizer make_pre_tokenizer(const JsonPart& json);

PreTokenizer bert_pre_tokenizer();
PreTokenizer gpt2_pre_tokenizer(bool add_prefix_space);

}  // namespace heed::text
