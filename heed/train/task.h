// A training task: model, data, loss and evaluation as functions. trainer.h runs the training loop for any task.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/models/model.h"
#include "heed/train/run_folder.h"
#include "heed/train/settings.h"

namespace HEED_API heed {

// The inputs of one step: `samples` samples, as tensors by name.
struct Batch {
  TensorMap inputs = {};
  int64_t samples = 0;
  bool same_work = false;          // forward launches the same kernels for all batches of these shapes, so a CUDA graph is possible
  std::vector<double> extra = {};  // anything else the task needs, e.g. the mixing ratio of mixup
};

// A mean over samples or tokens, as sum and count: for "accuracy", correct predictions of all.
struct RunningMean {
  double sum = 0, count = 0;
  void add(const RunningMean& more) { sum += more.sum, count += more.count; }
};
using RunningMeans = std::map<std::string, RunningMean>;

// A training metric as sum and count; the sum is computed on the device.
struct StepMetric {
  Tensor sum;  // ()
  double count = 0;

  RunningMean value() const { return {static_cast<double>(sum.item()), count}; }  // copies it to the host
};

// The results of a forward pass in training.
struct StepOutput {
  Tensor loss;                                     // (), differentiable
  std::map<std::string, StepMetric> metrics = {};  // training metrics, e.g. "accuracy"
  double multiply_adds = 0;                        // of the step, forward and backward
};

// A sample for the report: an image with attention on its patches, tokens with attention weights, or a translation with its alignment.
struct Sample {
  std::string truth = {}, guess = {};
  std::string source = {};  // input text of translations and continuations
  double score = 0;         // probability of the guess
  bool right = false;
  Image image = {};                                  // for images
  std::vector<std::string> rows = {}, columns = {};  // for text: output tokens (empty: one row) and input tokens
  int64_t map_rows = 0, map_columns = 0;             // for images the patch grid; for text as rows and columns
  std::vector<float> map = {};                       // (map_rows, map_columns), sums to 1 over an image, or over each row of text
};

// A validation sample whose attention maps are written to the event file after every epoch.
struct TrackedSample {
  TensorMap inputs = {};                             // one sample; empty if there is none
  Image image = {};                                  // for images, after preprocessing
  std::vector<std::string> rows = {}, columns = {};  // for text: columns are input tokens, rows are output tokens
};

// Scores of a model on a part of the data.
struct Evaluation {
  Metrics figures = {};  // "loss", "accuracy", "top5", "perplexity", "bleu", ...
  Json detail = {};      // for classification: see ClassScores
};

// A task as the training loop uses it.
struct Task {
  std::string name = {};                                     // "classify", ...
  std::shared_ptr<Model> model = {};                         // to be trained
  std::string metric = "accuracy";                           // selects the best epoch
  std::vector<std::pair<std::string, int64_t>> counts = {};  // samples per part, to show to the user
  Json data = {};                       // fingerprint of each part before preprocessing, see data_fingerprint.h; the same on every machine
  std::vector<std::string> notes = {};  // notes about the data, for the log

  // The batches of an epoch as sample indices. A function of (seed, epoch) only.
  std::function<std::vector<std::vector<int64_t>>(int64_t epoch)> batches = {};
  // Builds a batch. Called in background threads; random numbers depend only on (seed, epoch, sample).
  std::function<Batch(int64_t epoch, const std::vector<int64_t>& samples)> batch = {};
  std::function<StepOutput(const Batch& batch, const ForwardOptions& options)> forward = {};
  std::function<TensorMap(const Batch& batch)> model_inputs = {};  // null: those of the batch
  bool compares_samples = false;              // the loss compares the samples of a batch, so its shards run in lockstep (lockstep.h)
  std::function<Evaluation()> evaluate = {};  // on the validation part, without gradients
  std::function<Evaluation()> test = {};      // on the test part, in more detail; null if there is none
  std::function<std::vector<Sample>()> samples = {};
  TrackedSample tracked = {};
  std::function<std::vector<Sample>()> first_samples = {};          // augmented training images of the first epoch; null if there are none
  std::function<void(const Path& folder)> save_preprocessing = {};  // writes tokenizer and preprocessor files next to the model
};

}  // namespace heed
