// From words to a result: settings are checked before anything runs, and an experiment that breaks does not take the others with it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "heed/core/nearest.h"
#include "heed/lab/result.h"
#include "heed/train/settings_value.h"

namespace heed::lab {
namespace {

struct ReadyExperiment {
  std::unique_ptr<bool> full = std::make_unique<bool>(false);
  std::unique_ptr<Settings> settings = std::make_unique<Settings>("lab");
  Run run = {};
};

std::string key_in(const std::string& word) {
  const size_t at = word.find('=');
  check<UsageError>(at != std::string::npos && at > 0, "lab: found ", quoted(word), ", expected key=value");
  return word.substr(0, at);
}

ReadyExperiment ready(const Experiment& experiment, const std::vector<std::string>& words) {
  ReadyExperiment out;
  out.settings->add("full", *out.full, "larger sizes, which take longer");
  for (const std::string& word : words)
    if (key_in(word) == "full") out.settings->assign(word);
  out.run = experiment.prepare(*out.settings, *out.full ? Size::full : Size::quick);
  const Json known = out.settings->json();
  for (const std::string& word : words)
    if (known.contains(key_in(word)) && key_in(word) != "full") out.settings->assign(word);
  return out;
}

}  // namespace

void check_plan(const Plan& plan) {
  std::vector<std::string> keys;
  for (const Experiment* experiment : plan.experiments) {
    const Json known = ready(*experiment, plan.words).settings->json();
    for (const auto& [key, value] : known.items()) keys.push_back(key);
  }
  for (const std::string& word : plan.words) {
    const std::string key = key_in(word);
    check<UsageError>(std::find(keys.begin(), keys.end(), key) != keys.end(), "lab: ",
                      plan.experiments.size() == 1 ? plan.experiments[0]->name + " has no setting " : "no experiment named has a setting ",
                      quoted(key), did_you_mean(key, keys));
  }
}

Result run_one(const Experiment& experiment, const std::vector<std::string>& words, const Say& say) {
  const ReadyExperiment prepared = ready(experiment, words);
  Result out{.experiment = &experiment, .settings = prepared.settings->json()};
  const auto begin = std::chrono::steady_clock::now();
  try {
    out.report = prepared.run(say);
    out.verdict = verdict_of(out.report);
    for (Figure& figure : out.report.figures) hold_still(figure);
  } catch (const Error& error) {
    if (error.exit_code() != 1) throw;  // what a person gave it was wrong
    out.error = error.what();
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

std::string settings_help(const Experiment& experiment) { return ready(experiment, {}).settings->help(); }

}  // namespace heed::lab
