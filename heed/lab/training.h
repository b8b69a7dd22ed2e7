// Training runs of experiments, through the same Trainer as heed train, in a temporary folder.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heed/io/temporary.h"
#include "heed/lab/experiment.h"
#include "heed/lab/measure.h"
#include "heed/train/task.h"

namespace heed::lab {

std::string setting(const std::string& key, auto value) { return key + "=" + std::to_string(value); }

struct TrainingRun {
  std::string task = {};                             // "classify", ...
  std::vector<std::string> settings = {};            // key=value
  std::function<void(Task& task)> modify_task = {};  // changes the task before training
  bool curves = false;                               // evaluates after every epoch

  void add(const std::vector<std::string>& more) { settings.insert(settings.end(), more.begin(), more.end()); }
};

struct TrainedModel {
  std::shared_ptr<Model> model = {};
  Path folder = {};                     // of the saved model
  std::vector<double> losses = {};      // training loss per epoch
  std::vector<Evaluation> epochs = {};  // after each epoch, if the run has curves
  int64_t steps = 0;
  double samples = INFINITY;                  // that evaluate() is computed on, where their number is known
  std::function<Evaluation()> evaluate = {};  // on the test part, or the validation part if there is none

  double metric(const std::string& name) const;              // of evaluate()
  std::vector<double> curve(const std::string& name) const;  // of every epoch
};
// Trains and returns the model after the last step: without early stopping or model selection, so that all runs have the same budget.
TrainedModel run_training(const TrainingRun& run, const TemporaryFolder& folder, const std::string& name, const ProgressCallback& progress);

// Saves the untrained model in a folder that runs can start from (from=FOLDER), so that they share initial weights and vocabulary.
Path save_initial_model(const TrainingRun& run, const TemporaryFolder& folder, const std::string& name);

// Settings of small vision transformers for image classification, which experiments vary in one way each.
struct ImageTrainingRuns {
  std::string data = "shapes";
  int64_t images = 2000, epochs = 6, seeds = 4;
  int64_t width = 64, layers = 2, heads = 4, patch = 8;
  float rate = 2e-3f;
  uint64_t seed = 1;

  void declare(Settings& settings, bool by_epochs = true);  // by_epochs: with the setting `epochs`
  TrainingRun for_seed(uint64_t run_seed) const;            // settings may be added: later ones win
  std::vector<std::string> transformer() const;             // the settings of the default model
};

// One curve per run: its mean, with a band from the lowest to the highest.
Series mean_curve(const std::string& name, const std::vector<std::vector<double>>& curves);

int64_t work_of_image(const Model& model);  // multiply-adds of one forward pass with one image, counted

// One share per seed: an accuracy, or a difference of two.
struct Trials {
  std::vector<double> values = {};
  double samples = INFINITY;  // of the test set, where their number is known

  void add(const TrainedModel& model, const std::string& metric = "accuracy");
  Interval interval() const { return share_confidence(values, samples); }
};
Interval difference(const Trials& a, const Trials& b);  // of a - b per seed, from -1 to 1
std::string interval_text(const Interval& interval);    // of shares: "52.1 % (50.3 to 53.9)"
std::string percent_text(double share);                 // "52.1 %"
std::string points_text(const Interval& interval);      // of differences of shares, in percentage points: "2.4 points (-2.0 to 6.9)"

}  // namespace heed::lab
