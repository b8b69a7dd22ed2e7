// A model in memory with what turns requests into its inputs.
#pragma once

#include <optional>

#include "heed/models/classify.h"
#include "heed/models/generate.h"
#include "heed/models/image_processor.h"
#include "heed/serve/model_info.h"

namespace heed::serve {

class LoadedModel {
 public:
  LoadedModel(const ModelInfo& info, Weights weights);

  const ModelInfo& info() const { return info_; }
  const Model& model() const { return text_ ? text_->model : *vision_; }
  const TextModel& text() const { return *text_; }  // of models that take text
  const ImageProcessor& images() const { return *images_; }
  const Tokenizer& target() const { return target_ ? *target_ : text_->tokenizer; }  // of translations
  const Labels& labels() const { return *labels_; }                                  // of classifiers
  const GenerationOptions& generation() const { return generation_; }
  const TextModel& embedder();  // loaded when it is needed; the model itself if it is an encoder without a head
  int64_t bytes() const;        // of parameters

 private:
  ModelInfo info_;
  Weights weights_;
  std::optional<TextModel> text_ = {}, embedder_ = {};
  std::optional<Model> vision_ = {};
  std::optional<ImageProcessor> images_ = {};
  std::optional<Tokenizer> target_ = {};
  std::optional<Labels> labels_ = {};
  GenerationOptions generation_ = {};
};

}  // namespace heed::serve
