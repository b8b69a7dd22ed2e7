// How experiments learn: whole runs through the loop that every task goes through, in a folder that is gone afterwards.
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

std::string word(const std::string& key, auto value) { return key + "=" + std::to_string(value); }  // of a setting

struct Lesson {
  std::string task = {};                     // "classify", ...
  std::vector<std::string> words = {};       // its settings, key=value
  std::function<void(Task& task)> set = {};  // what is to be otherwise, before it learns

  void add(const std::vector<std::string>& more) { words.insert(words.end(), more.begin(), more.end()); }
};

struct Learned {
  std::shared_ptr<Model> model = {};
  Path folder = {};                 // the model's
  std::vector<double> losses = {};  // of training, by epochs
  int64_t steps = 0;
  std::function<Evaluation()> judge = {};  // on the test part; of tasks without one, on what was held out

  double figure(const std::string& name) const;  // of that evaluation
};
// The model after the last step: nothing is held out to choose a better one by, so that all have the same budget.
Learned learn(const Lesson& lesson, const TemporaryFolder& folder, const std::string& name, const Say& say);

// The model that a lesson begins with, in a folder that lessons may begin from: the same beginning and the same words for all of them.
Path begun(const Lesson& lesson, const TemporaryFolder& folder, const std::string& name);

// Small vision transformers that learn to name pictures, which experiments change in one way each.
struct PictureLessons {
  std::string data = "shapes";
  int64_t pictures = 2000, epochs = 6, seeds = 4;
  int64_t width = 64, layers = 2, heads = 4, patch = 8;
  float rate = 2e-3f;
  uint64_t seed = 1;

  void declare(Settings& settings);
  Lesson lesson(uint64_t of_seed) const;         // words may be added: later ones win
  std::vector<std::string> transformer() const;  // the words for the model that is meant, unless another one is
};

int64_t work_of_picture(const Model& model);  // multiply-adds of naming one, counted

// One number of every seed, and what is known of its mean.
struct Trials {
  std::vector<double> values = {};

  Interval interval() const { return confidence(values); }
};
Trials differences(const Trials& a, const Trials& b);  // seed by seed, a less b
std::string interval_text(const Interval& interval);   // "52.1 % (50.3 to 53.9)", of shares

}  // namespace heed::lab
