// Answers to questions as parts of a text, for models with start and end logits.
#pragma once

#include "heed/core/api.h"
#include "heed/models/classify.h"

namespace HEED_API heed {

// A part of a text.
struct AnswerSpan {
  text::Span at;  // bytes of the text, which is the second of the pair
  float score;    // the probability that it starts and ends there
};

// For pairs of a question and a text: the `top` best answers of each, the best first, of at most 15 tokens. Empty if the text has no
// tokens. Probabilities are over the tokens of the text and the first token, which means that there is no answer.
std::vector<std::vector<AnswerSpan>> find_answers(const TextModel& model, std::span<const Encoding> encodings, int64_t top = 1,
                                                  const Done& done = {});

}  // namespace heed
