// An experiment: one claim about attention, how to run it, and what it is expected to show. Each is a file of this folder that
// defines one function; experiments.h lists them.
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
using Say = std::function<void(const std::string& line)>;  // how far a long experiment is, now and then
using Run = std::function<Report(const Say& say)>;

struct Experiment {
  std::string number, name;  // "L7", "dot-product-variance"
  Topic topic;
  std::string title;           // "Why scores are divided by √d"
  std::string claim;           // one sentence; as in all sentences of the lab, $TeX$ may stand in it
  std::string formula = {};    // TeX, as far as formula.h reads it
  std::string published = {};  // the claim as it was published, where that is wrong
  Verdict expected = Verdict::holds;
  // Declares the settings, whose defaults may depend on the size, and gives back what runs with them.
  std::function<Run(Settings& settings, Size size)> prepare;
};

// Options: a struct of settings that holds their defaults.
template <class Options>
std::function<Run(Settings&, Size)> prepared(void (*declare)(Settings& settings, Options& options, Size size),
                                             Report (*run)(const Options& options, const Say& say)) {
  return [declare, run](Settings& settings, Size size) -> Run {
    const auto options = std::make_shared<Options>();
    declare(settings, *options, size);
    return [options, run](const Say& say) { return run(*options, say); };
  };
}

const std::vector<Experiment>& every_experiment();            // in the order of their numbers
const Experiment& experiment_named(const std::string& name);  // or number; a UsageError that names the nearest where there is none

}  // namespace heed::lab
