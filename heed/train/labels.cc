#include "heed/train/labels.h"

#include <algorithm>

#include "heed/train/dialect.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

// The config of a model that was made before, with what a person chose for it.
Json changed(Json config, const Chosen& chosen) {
  ModelChoice said = chosen.model, nothing;
  Settings mine, others;
  declare(mine, said);
  declare(others, nothing);
  const Json chosen_ones = mine.json(), plain = others.json();
  for (const auto& [key, value] : chosen_ones.items())
    check<UsageError>(value == plain.at(key) || key == "preset" || key == "dropout" || key == "stochastic_depth", "train: ", key, "=",
                      mine.text(key), " beside from=", chosen.from,
                      ": its model is as it was made, expected no other choices than dropout and stochastic_depth");
  if (said.dropout >= 0)
    for (const std::string& key : dialect_of(config).dropout) config[key] = value_json(said.dropout);
  if (said.stochastic_depth >= 0) config["heed"]["stochastic_depth"] = value_json(said.stochastic_depth);
  return config;
}

}  // namespace

void set_labels(Json& config, const std::vector<std::string>& classes) {
  config.erase("num_labels");
  config["id2label"] = config["label2id"] = Json::object();
  for (size_t i = 0; i < classes.size(); ++i) {
    config["id2label"][std::to_string(i)] = classes[i];
    config["label2id"][classes[i]] = i;
  }
}

std::shared_ptr<Model> model_for(const Chosen& chosen, const Json& config, const std::vector<std::string>& new_parts) {
  const uint64_t seed = chosen.learn.seed;
  if (chosen.from.empty()) return std::make_shared<Model>(make_model(config, {.seed = seed}));
  const Json refined = changed(config, chosen);
  return std::make_shared<Model>(
      load(chosen.from, {.names = {.allow_missing = new_parts, .allow_unused = new_parts}, .config = refined, .seed = seed}));
}

Share right_of(const Tensor& logits, const Tensor& labels) {
  const std::vector<int64_t> guesses = argmax(logits).to_vector<int64_t>(), truth = labels.to_vector<int64_t>();
  Share share{0, static_cast<double>(truth.size())};
  for (size_t i = 0; i < truth.size(); ++i) share.sum += guesses[i] == truth[i];
  return share;
}

void judge(Sample& sample, const std::vector<float>& probabilities, const std::vector<std::string>& classes) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  sample.guess = classes[static_cast<size_t>(best - probabilities.begin())];
  sample.score = *best;
  sample.right = sample.guess == sample.truth;
}

std::vector<Sample> some_right_and_wrong(int64_t count, const std::function<Sample(int64_t i)>& look_at) {
  constexpr int64_t kOfEach = 8, kTried = 400;
  std::vector<Sample> right, wrong;
  for (int64_t i = 0; i < std::min(count, kTried) && (std::ssize(right) < kOfEach || std::ssize(wrong) < kOfEach); ++i) {
    Sample sample = look_at(i);
    std::vector<Sample>& list = sample.right ? right : wrong;
    if (std::ssize(list) < kOfEach) list.push_back(std::move(sample));
  }
  right.insert(right.end(), std::make_move_iterator(wrong.begin()), std::make_move_iterator(wrong.end()));
  return right;
}

}  // namespace heed
