// Evaluation of models that compare images with texts: finding the caption of an image among all captions, and the image of a caption.
#pragma once

#include "heed/data/captions.h"
#include "heed/models/image_processor.h"
#include "heed/models/text_model.h"
#include "heed/train/task.h"

namespace heed {

// Unit vectors of all images and of all different captions.
struct Retrieval {
  Tensor images = {}, texts = {};          // (I, E), (T, E), on the CPU
  std::vector<std::string> captions = {};  // T different ones
  std::vector<int64_t> image_of = {};      // of every caption of the data
  std::vector<int64_t> text_of = {};       // the number of its text
  float factor = 1;                        // e^logit_scale

  // image_to_text_accuracy: the best text of an image is a caption of it; text_to_image_accuracy: the best image of a text has it as
  // caption; ..._top5_accuracy: one of the best five; of equal ones the first is better. loss: contrastive, in batches of 64 captions in
  // the order of the data
  Evaluation evaluation() const;
  std::vector<float> text_probabilities(int64_t image) const;  // of the T texts
};

// Runs both encoders. Images must be prepared by the reader. done: called with the number of images and texts of a batch
Retrieval encode_for_retrieval(const Model& model, const Tokenizer& tokenizer, const ImageProcessor& reader, const CaptionedImages& data,
                               int64_t max_length, const std::function<void(int64_t count)>& done = {});

}  // namespace heed
