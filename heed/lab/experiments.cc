#include "heed/lab/experiments.h"

#include <algorithm>

#include "heed/core/nearest.h"
#include "heed/train/settings_value.h"

namespace heed::lab {
namespace {

int number_of(const Experiment& experiment) { return std::stoi(experiment.number.substr(1)); }

std::string lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

}  // namespace

std::string title_of(Topic topic) {
  switch (topic) {
    case Topic::temperature: return "Temperature, noise and stretched keys";
    case Topic::expression: return "What attention can express";
    case Topic::statistics: return "Statistics of scores";
    case Topic::cost: return "What attention costs";
    case Topic::positions: return "Positions";
    case Topic::convolution: return "Attention and convolution";
    case Topic::layers: return "The other layers";
    case Topic::learning: return "Learning";
  }
  return "";
}

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> list = [] {
    std::vector<Experiment> out;
#define HEED_ADD(name) out.push_back(name());
    HEED_EXPERIMENTS(HEED_ADD)
#undef HEED_ADD
    std::stable_sort(out.begin(), out.end(), [](const Experiment& a, const Experiment& b) { return number_of(a) < number_of(b); });
    return out;
  }();
  return list;
}

const Experiment& find_experiment(const std::string& name) {
  if (lower_case(name) == "l29") return find_experiment("L39");  // the same claim, measured to the end of learning
  std::vector<std::string> names;
  for (const Experiment& experiment : all_experiments()) {
    if (lower_case(name) == experiment.name || lower_case(name) == lower_case(experiment.number)) return experiment;
    names.push_back(experiment.name);
  }
  const std::string near = did_you_mean(lower_case(name), names);
  fail<UsageError>("lab: there is no experiment ", quoted(name), near.empty() ? "; heed lab lists them" : near);
}

}  // namespace heed::lab
