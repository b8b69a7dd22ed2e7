#include "heed/train/labels.h"

#include <algorithm>
#include <map>

#include "heed/models/architecture.h"
#include "heed/ops/count_equal.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

constexpr size_t kTried = 400;  // samples tried to find right and wrong ones

// The config of a loaded model with the user's changes.
Json apply_changes(Json config, const JobOptions& chosen) {
  ModelChoice choice = chosen.model, defaults;
  Settings chosen_settings, default_settings;
  declare(chosen_settings, choice);
  declare(default_settings, defaults);
  const Json chosen_values = chosen_settings.json(), default_values = default_settings.json();
  for (const auto& [key, value] : chosen_values.items())
    check<UsageError>(value == default_values.at(key) || key == "preset" || key == "dropout" || key == "stochastic_depth", "train: ", key,
                      "=", chosen_settings.text(key), " with from=", chosen.from,
                      ": a loaded model cannot change, expected only dropout and stochastic_depth");
  if (choice.dropout >= 0)
    for (const std::string& key : architecture_of(Config(config, chosen.from)).family->keys.dropout)
      config[key] = value_json(choice.dropout);
  if (choice.stochastic_depth >= 0) config["heed"]["stochastic_depth"] = value_json(choice.stochastic_depth);
  return config;
}

}  // namespace

void set_task(Json& config, ModelTask task, const std::string& from) {
  const Architecture& found = architecture_of(Config(config, (Path(from) / "config.json").string()));
  const Architecture* chosen = for_task(found, task);
  std::vector<std::string> others;
  for (const Architecture& each : architectures())
    if (each.task == task) others.push_back(each.name);
  check<UsageError>(chosen, "train: found ", found.name, " in ", from,
                    ", which has no head for this task; expected a model type that has: ", listed(others));
  config["architectures"] = {chosen->name};
}

Json config_from(const std::string& from, ModelTask task) {
  Json config = read_json(Path(from) / "config.json");
  set_task(config, task, from);
  return config;
}

void set_labels(Json& config, const std::vector<std::string>& classes) {
  config.erase("num_labels");
  config["id2label"] = config["label2id"] = Json::object();
  for (size_t i = 0; i < classes.size(); ++i) {
    config["id2label"][std::to_string(i)] = classes[i];
    config["label2id"][classes[i]] = i;
  }
}

std::shared_ptr<Model> model_for(const JobOptions& chosen, const Json& config) {
  const uint64_t seed = chosen.train_options.seed;
  if (chosen.from.empty()) return std::make_shared<Model>(make_model(config, {.seed = seed}));
  const Json refined = apply_changes(config, chosen);
  return std::make_shared<Model>(load(chosen.from, {.config = refined, .new_head = true, .seed = seed}));
}

StepMetric accuracy_of(const Tensor& logits, const Tensor& labels) {
  const NoGrad no_grad;
  return {count_equal(argmax(logits), labels.to(logits.device())), static_cast<double>(labels.count())};
}

void score_sample(Sample& sample, const std::vector<float>& probabilities, const std::vector<std::string>& classes) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  sample.guess = classes[static_cast<size_t>(best - probabilities.begin())];
  sample.score = *best;
  sample.right = sample.guess == sample.truth;
}

std::vector<int64_t> class_round_robin(std::span<const int64_t> labels) {
  std::map<int64_t, std::vector<int64_t>> of_class;
  for (size_t i = 0; i < labels.size(); ++i) of_class[labels[i]].push_back(static_cast<int64_t>(i));
  std::vector<const std::vector<int64_t>*> classes;
  for (const auto& [label, samples] : of_class) classes.push_back(&samples);
  const size_t C = classes.size(), strides = std::max<size_t>((C + kTried - 1) / kTried, 1);
  std::vector<int64_t> out;
  for (size_t nth = 0; out.size() < labels.size(); ++nth)
    for (size_t first = 0; first < strides; ++first)
      for (size_t c = first; c < C; c += strides)
        if (nth < classes[c]->size()) out.push_back((*classes[c])[nth]);
  return out;
}

std::vector<Sample> pick_right_and_wrong(std::span<const int64_t> order, const std::function<Sample(int64_t i)>& explain) {
  constexpr int64_t kOfEach = 8;
  std::vector<Sample> right, wrong;
  for (const int64_t i : order.subspan(0, std::min(order.size(), kTried))) {
    if (std::ssize(right) == kOfEach && std::ssize(wrong) == kOfEach) break;
    Sample sample = explain(i);
    std::vector<Sample>& list = sample.right ? right : wrong;
    if (std::ssize(list) < kOfEach) list.push_back(std::move(sample));
  }
  right.insert(right.end(), std::make_move_iterator(wrong.begin()), std::make_move_iterator(wrong.end()));
  return right;
}

}  // namespace heed
