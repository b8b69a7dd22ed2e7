// heed eval for images with captions: finding them with CLIP, or generating them.
#pragma once

#include "heed/cli/data_settings.h"
#include "heed/train/evaluate.h"

namespace heed::cli {

struct CaptionEvaluation {
  Evaluation evaluation = {};
  std::string what = {}, columns = {};
};
// part: "test", "validation", "train" or empty: the first that exists, in this order
CaptionEvaluation evaluate_on_captions(const Model& model, const Path& folder, const std::string& data, const std::string& part,
                                       const DataSettings& settings, const Done& done);

}  // namespace heed::cli
