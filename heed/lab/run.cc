// Runs an experiment: settings are checked before anything runs, and a failing experiment does not abort the others.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "heed/core/nearest.h"
#include "heed/lab/cache.h"
#include "heed/train/settings_value.h"

namespace heed::lab {
namespace {

struct PreparedExperiment {
  std::unique_ptr<bool> full = std::make_unique<bool>(false);
  std::unique_ptr<int64_t> budget = std::make_unique<int64_t>(1);
  std::unique_ptr<Settings> settings = std::make_unique<Settings>("lab");
  Run run = {};
};

// Creates models on another device while an experiment runs.
class ModelDevice {
 public:
  explicit ModelDevice(Device device) : before_(default_device()) { set_default_device(device); }
  ~ModelDevice() { set_default_device(before_); }
  ModelDevice(const ModelDevice&) = delete;
  ModelDevice& operator=(const ModelDevice&) = delete;

 private:
  Device before_;
};

std::string key_in(const std::string& setting) { return key_value_in("lab", setting).key; }

PreparedExperiment prepare_experiment(const Experiment& experiment, const std::vector<std::string>& settings) {
  PreparedExperiment out;
  out.settings->add("full", *out.full, "larger sizes, longer run time");
  if (trains_models(experiment))
    out.settings->add("budget", *out.budget,
                      "factor of the default epochs and steps of training, to see whether the verdict stays the same",
                      {.least = 1, .most = 100});
  const Json general = out.settings->json();
  for (const std::string& setting : settings)
    if (general.contains(key_in(setting))) out.settings->assign(setting);
  out.run = experiment.prepare(*out.settings, *out.full ? Size::full : Size::quick);
  const Json known = out.settings->json();
  if (*out.budget > 1)
    for (const std::string& key : experiment.budget)
      out.settings->assign(key + "=" + std::to_string(*out.budget * known.at(key).get<int64_t>()));
  for (const std::string& setting : settings)
    if (known.contains(key_in(setting)) && !general.contains(key_in(setting))) out.settings->assign(setting);
  return out;
}

}  // namespace

void check_plan(const Plan& plan) {
  std::vector<std::string> keys;
  for (const Experiment* experiment : plan.experiments) {
    const Json known = prepare_experiment(*experiment, plan.settings).settings->json();
    for (const auto& [key, value] : known.items()) keys.push_back(key);
  }
  for (const std::string& setting : plan.settings) {
    const std::string key = key_in(setting);
    check<UsageError>(
        std::find(keys.begin(), keys.end(), key) != keys.end(),
        "lab: ", plan.experiments.size() == 1 ? plan.experiments[0]->name + " has no setting " : "none of the experiments has a setting ",
        quoted(key), did_you_mean(key, keys));
  }
}

Result run_one(const Experiment& experiment, const std::vector<std::string>& settings, const ProgressCallback& progress, Device gpu) {
  const PreparedExperiment prepared = prepare_experiment(experiment, settings);
  Result out{.experiment = &experiment, .settings = prepared.settings->json()};
  const auto begin = std::chrono::steady_clock::now();
  try {
    std::optional<ModelDevice> on_gpu;
    if (*prepared.full && experiment.gpu && gpu != kCpu) on_gpu.emplace(gpu);
    out.report = prepared.run(progress);
    out.verdict = verdict_of(out.report);
    for (Figure& figure : out.report.figures) fix_axes(figure);
  } catch (const Error& error) {
    if (error.exit_code() != 1) throw;  // wrong user input
    out.error = error.what();
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

bool trains_models(const Experiment& experiment) { return !experiment.budget.empty(); }

Result run_or_find(const Experiment& experiment, const std::vector<std::string>& settings, const ProgressCallback& progress,
                   const ReportCache& cache, Device gpu) {
  if (!trains_models(experiment)) return run_one(experiment, settings, progress, gpu);
  const Json effective = effective_settings(experiment, settings);
  if (std::optional<CachedReport> found = cache.find(experiment.name, effective)) {
    Result out{.experiment = &experiment, .report = std::move(found->report), .settings = effective, .seconds = found->seconds};
    out.verdict = verdict_of(out.report);
    return out;
  }
  Result out = run_one(experiment, settings, progress, gpu);
  if (out.error.empty()) cache.keep(experiment.name, effective, {out.report, out.seconds});
  return out;
}

Json effective_settings(const Experiment& experiment, const std::vector<std::string>& settings) {
  return prepare_experiment(experiment, settings).settings->json();
}

std::vector<std::string> settings_for(const Experiment& experiment, const std::vector<std::string>& settings) {
  const Json known = effective_settings(experiment, settings);
  std::vector<std::string> out;
  for (const std::string& setting : settings)
    if (known.contains(key_in(setting))) out.push_back(setting);
  return out;
}

std::string settings_help(const Experiment& experiment) { return prepare_experiment(experiment, {}).settings->help(); }

std::vector<SettingInfo> settings_of(const Experiment& experiment) { return prepare_experiment(experiment, {}).settings->infos(); }

}  // namespace heed::lab
