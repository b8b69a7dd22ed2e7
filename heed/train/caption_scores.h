// Evaluation of generated captions.
#pragma once

#include "heed/data/captions.h"
#include "heed/models/caption.h"
#include "heed/models/image_processor.h"
#include "heed/train/task.h"

namespace heed {

// Lowercase, with one space around punctuation, as tokenizers change both: "A dog." -> "a dog ."
std::string plain_caption(const std::string& caption);

// exact: share of images whose generated caption equals one of theirs, both as plain_caption(); bleu, if a caption has four words: against
// all captions of each image; chrf: against the first. detail: "captions", the first 20. Images must be prepared by the reader.
Evaluation evaluate_captions(const Model& model, const Tokenizer& tokenizer, const ImageProcessor& reader, const CaptionedImages& data,
                             const GenerationOptions& options, const std::function<void(int64_t count)>& done = {});

}  // namespace heed
