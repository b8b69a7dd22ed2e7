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

// Splits a question with a long text into pairs of the question and a window of the text, of at most max_length tokens each. Consecutive
// windows share `overlap` tokens. A pair that is short enough is returned unchanged.
std::vector<Encoding> answer_windows(const Encoding& pair, int64_t max_length, int64_t overlap = 128);

// The best answers in one window, the best first. start_logits, end_logits: of all tokens
std::vector<AnswerSpan> answers_in(const Encoding& window, std::span<const float> start_logits, std::span<const float> end_logits,
                                   int64_t top = 1);
// The best of all windows of a text.
std::vector<AnswerSpan> best_of_windows(std::vector<AnswerSpan> all, int64_t top = 1);

// For pairs of a question and a text of any length: the `top` best answers of each, the best first, of at most 15 tokens. Empty if the
// text has no tokens. Probabilities are over the tokens of a window and the first token, which means that there is no answer.
std::vector<std::vector<AnswerSpan>> find_answers(const TextModel& model, std::span<const Encoding> encodings, int64_t top = 1,
                                                  const Done& done = {});

}  // namespace heed
