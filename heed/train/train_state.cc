#include "heed/train/train_state.h"

#include <cmath>
#include <limits>

#include "heed/train/scores.h"

namespace heed {
namespace {

// Metrics may be non-finite, which JSON cannot store.
double number_from(const Json& json) { return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>(); }

Json to_json(const RunningMean& mean) { return {mean.sum, mean.count}; }
RunningMean mean_from(const Json& json) { return {number_from(json.at(0)), number_from(json.at(1))}; }

}  // namespace

bool TrainState::take_metric(const std::string& metric, double value) {
  const bool better = best_epoch == 0 || is_better(metric, value, best);
  epochs_since_best = better ? 0 : epochs_since_best + 1;
  if (better) best = value, best_epoch = epoch + 1;
  return better;
}

Json to_json(const TrainState& state) {
  Json metrics = Json::object();
  for (const auto& [name, mean] : state.metrics) metrics[name] = to_json(mean);
  return {{"epoch", state.epoch},
          {"batch", state.batch},
          {"step", state.step},
          {"random", {state.rng.seed(), state.rng.next_stream()}},
          {"loss", to_json(state.loss)},
          {"shares", metrics},
          {"skipped", state.skipped},
          {"best_epoch", state.best_epoch},
          {"epochs_since_best", state.epochs_since_best},
          {"best", state.best},
          {"over", state.over}};
}

TrainState train_state_from(const Json& json) {
  TrainState state{.epoch = json.at("epoch").get<int64_t>(),
                   .batch = json.at("batch").get<int64_t>(),
                   .step = json.at("step").get<int64_t>(),
                   .rng = Rng(json.at("random").at(0).get<uint64_t>(), json.at("random").at(1).get<uint64_t>()),
                   .loss = mean_from(json.at("loss")),
                   .skipped = json.at("skipped").get<int64_t>(),
                   .best_epoch = json.at("best_epoch").get<int64_t>(),
                   .epochs_since_best = json.at("epochs_since_best").get<int64_t>(),
                   .best = number_from(json.at("best")),
                   .over = json.at("over").get<bool>()};
  for (const auto& [name, mean] : json.at("shares").items()) state.metrics[name] = mean_from(mean);
  return state;
}

}  // namespace heed
