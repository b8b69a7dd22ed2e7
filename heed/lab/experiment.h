// An experiment: one claim about attention, how to test it, and the expected verdict. Each is a file of this folder that defines one
// function; experiments.h lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/lab/report.h"
#include "heed/train/settings.h"

namespace heed::lab {

enum class Topic { temperature, expression, statistics, cost, positions, convolution, layers, learning };
std::string title_of(Topic topic);

enum class Size { quick, full };
using ProgressCallback = std::function<void(const std::string& line)>;  // called with a progress message
using Run = std::function<Report(const ProgressCallback& progress)>;

struct Experiment {
  std::string number, name;  // "L7", "dot-product-variance"
  Topic topic;
  std::string title;           // "Why scores are divided by √d"
  std::string claim;           // one sentence; like all texts of the lab it may contain $TeX$
  std::string formula = {};    // TeX, as far as formula.h reads it
  std::string published = {};  // the claim as published, if that is wrong
  std::string setup = {};      // what is computed and what is measured
  Verdict expected = Verdict::holds;
  std::vector<std::string> budget = {};  // settings with the length of training, which budget=2 doubles; none: trains no models
  bool gpu = false;                      // with full=true it uses a GPU, where there is one
  bool timed = false;                    // trains models and measures time: nothing else may run meanwhile
  // Declares the settings (defaults may depend on the size) and returns the function that runs the experiment.
  std::function<Run(Settings& settings, Size size)> prepare;
};

// Adapts declare and run, which share a struct of options that holds the defaults.
template <class Options>
std::function<Run(Settings&, Size)> prepared(void (*declare)(Settings& settings, Options& options, Size size),
                                             Report (*run)(const Options& options, const ProgressCallback& progress)) {
  return [declare, run](Settings& settings, Size size) -> Run {
    const auto options = std::make_shared<Options>();
    declare(settings, *options, size);
    return [options, run](const ProgressCallback& progress) { return run(*options, progress); };
  };
}

const std::vector<Experiment>& all_experiments();            // in the order of their numbers
const Experiment& find_experiment(const std::string& name);  // by name or number; otherwise a UsageError that suggests the nearest name

}  // namespace heed::lab
