// Predictions for the tokens of one sentence, from their logits; classify.h has the same for many sentences.
#pragma once

#include "heed/models/classify.h"

namespace heed {

// logits: (N, labels)
std::vector<LabelledWord> words_of(const TextModel& model, const Encoding& encoding, const Tensor& logits);

// logits: (N, V)
std::vector<FilledMask> masks_of(const TextModel& model, const Encoding& encoding, const Tensor& logits, int64_t top = 5);

}  // namespace heed
