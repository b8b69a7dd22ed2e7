// A task: what a model learns, from which data, and how one sees that it has. fit.h does the learning, the same for every task.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/models/model.h"
#include "heed/train/run_folder.h"
#include "heed/train/settings.h"

namespace heed {

struct Batch {
  Named inputs = {};
  int64_t samples = 0;
  std::vector<double> extra = {};  // what the task needs beside the inputs, the share of a mixed batch for example
};

// Sums over samples or tokens that become means: "accuracy" -> right ones, of so many.
struct Share {
  double sum = 0, of = 0;
  void add(const Share& more) { sum += more.sum, of += more.of; }
};
using Shares = std::map<std::string, Share>;

struct Outcome {
  Tensor loss;               // (), of which gradients are taken
  Shares shares = {};        // for the live line and the curves: "accuracy" and the like
  double multiply_adds = 0;  // of the forward pass
};

// One thing that was judged, for the report: a picture with attention on its patches, tokens with attention on each, or a translation
// with its alignment.
struct Sample {
  std::string truth = {}, guess = {};
  std::string source = {};  // of translations and continuations: the text that was read
  double score = 0;         // the probability of the guess
  bool right = false;
  Picture picture = {};                              // of pictures
  std::vector<std::string> rows = {}, columns = {};  // of texts: columns are read; rows are written, or one row of all columns
  int64_t map_rows = 0, map_columns = 0;             // pictures: the grid of patches; texts: as rows and columns
  std::vector<float> map = {};                       // (map_rows, map_columns), sums to 1 over pictures, over each row of texts
};

// A held-out sample that the event file follows: after every epoch it shows where the heads look in it.
struct Followed {
  Named inputs = {};                                 // of one sample; empty: there is none
  Picture picture = {};                              // of pictures, as the model sees it
  std::vector<std::string> rows = {}, columns = {};  // of texts: tokens that are read; rows: those that are written
};

struct Evaluation {
  Figures figures = {};  // "loss", "accuracy", "top5", "perplexity", "bleu", ...
  Json detail = {};      // of classifications: see ClassScores
};

struct Task {
  std::string name = {};  // "classify", ...
  std::shared_ptr<Model> model = {};
  std::string metric = "accuracy";                           // by which the best epoch is known
  std::vector<std::pair<std::string, int64_t>> counts = {};  // of samples, by part, for people
  Json data = {};  // by part: what tells these data from others, see data_print.h. Of raw data: the same on every machine
  std::vector<std::string> notes = {};  // what people should know about the data, for the log

  // Which samples of the training data go together in every step of an epoch. A function of (seed, epoch) alone.
  std::function<std::vector<std::vector<int64_t>>(int64_t epoch)> batches = {};
  // Those samples as inputs. Called in background threads; chance comes from (seed, epoch, sample) alone.
  std::function<Batch(int64_t epoch, const std::vector<int64_t>& samples)> batch = {};
  std::function<Outcome(const Batch& batch, const Ask& ask)> learn = {};
  std::function<Evaluation()> evaluate = {};  // on the validation part, without gradients
  std::function<Evaluation()> test = {};      // the same on the test part, in detail; null: there is none
  std::function<std::vector<Sample>()> samples = {};
  Followed followed = {};
  std::function<std::vector<Sample>()> first_samples = {};   // pictures as the first epoch learns from them; null: nothing to show
  std::function<void(const Path& folder)> save_beside = {};  // tokenizer and preprocessor files, beside the model's
};

}  // namespace heed
