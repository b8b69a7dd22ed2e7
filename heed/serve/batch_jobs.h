// Requests that a model answers in one call with others: sentences to embed, to label as a whole or by token, images, translations.
#pragma once

#include <functional>
#include <span>

#include "heed/io/image.h"
#include "heed/models/translate.h"
#include "heed/serve/loaded_model.h"
#include "heed/serve/metrics.h"

namespace heed::serve {

using Failed = std::function<void(std::exception_ptr error)>;
using Cancelled = std::function<bool()>;  // the client has disconnected

struct BatchJob {
  enum class Kind { vectors, labels, token_labels, images, translations };

  Kind kind = Kind::vectors;
  std::vector<Encoding> sentences = {};  // of all kinds but images
  std::vector<Image> images = {};
  std::function<GenerationOptions(const LoadedModel& model)> translation = {};  // options of translations
  std::string group = {};                                                       // only jobs of the same group share a call

  // In the model's thread. For every sentence or image a vector (D), logits (C), or logits of its tokens (n, C).
  std::function<void(const LoadedModel& model, const Tensors& outputs)> done = {};
  std::function<void(const LoadedModel& model, std::span<const Translated> sentences)> translated = {};  // instead, for translations
  Failed failed = {};
  Cancelled cancelled = {};

  int64_t tokens() const;  // about as much work as so many tokens
  int64_t image_bytes() const;
};

// Runs the jobs in as few calls as possible.
void run_batch_jobs(LoadedModel& model, std::vector<BatchJob>& jobs, Metrics& metrics);

}  // namespace heed::serve
