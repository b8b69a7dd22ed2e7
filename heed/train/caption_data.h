// Images with captions for tasks: their settings, parts, preprocessing and batches.
#pragma once

#include "heed/data/augment.h"
#include "heed/data/captions.h"
#include "heed/train/batch_order.h"
#include "heed/train/image_parts.h"
#include "heed/train/vocabulary.h"

namespace heed {

struct CaptionOptions {
  std::string data = "scenes", image_folder = {};
  CaptionColumns columns = {};
  ImageOptions image = {};
  bool skip_bad = false;
  int64_t limit = 0, pad = 0, max_length = 0;
  VocabularyOptions vocabulary = {.kind = "words"};
};
void declare(Settings& settings, CaptionOptions& options);

// The parts of the data, with resized images and captions as tokens.
struct CaptionPart {
  CaptionedImages data = {};
  std::vector<std::vector<int64_t>> tokens = {};  // of every caption

  int64_t count() const { return data.count(); }  // captions
  Json fingerprint() const;
};
struct CaptionParts {
  CaptionPart train = {}, validation = {}, test = {};
  Json preprocessing = {};  // preprocessor_config.json
  std::shared_ptr<const ImageProcessor> reader = {};
  AugmentOptions augment = {};
  std::vector<std::string> notes = {};  // for the log

  // Images of captions: (B, C, height, width)
  Tensor pixels(const CaptionPart& part, std::span<const int64_t> captions) const;
  Tensor augmented_pixels(std::span<const int64_t> captions, uint64_t seed, int64_t epoch) const;  // of train
  // The first caption of each image.
  static std::vector<int64_t> one_caption_each(const CaptionPart& part);
};

// Reads the data and chooses the image size, which it writes into the config. Tokens are missing: encode_captions() adds them.
CaptionParts read_caption_parts(CaptionOptions& options, const JobOptions& chosen, Json& config);
// Counts and fingerprints of the parts.
void add_parts(Task& task, const CaptionParts& parts);
void encode_captions(CaptionParts& parts, const Tokenizer& tokenizer, int64_t max_length);

}  // namespace heed
