// L49: a token copied over growing distances, by a recurrent layer (LSTM) and by attention, both trained for it.
#include <algorithm>
#include <cmath>

#include "heed/core/random.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/recurrent.h"
#include "heed/train/optimizer_step.h"

namespace heed::lab {
namespace {

constexpr int64_t kCopied = 8, kTestBatch = 256, kTestEvery = 20;

struct CopyOptions {
  int64_t nearest = 4, distances = 3, steps = 300, width = 32, batch = 32, seeds = 3;
  float rate = 5e-3f;
  uint64_t seed = 1;
};

void declare_copying(Settings& settings, CopyOptions& options, Size size) {
  if (size == Size::full) options.distances = 4, options.steps = 2000, options.seeds = 5;
  settings.add("nearest", options.nearest, "smallest distance, in tokens", {.least = 1, .most = 64});
  settings.add("distances", options.distances, "number of distances, each four times the one before", {.least = 2, .most = 5});
  settings.add("steps", options.steps, "of training, at most", {.least = 20, .most = 1e6});
  settings.add("width", options.width, "of tokens and states, a multiple of 4", {.least = 4, .most = 256});
  settings.add("batch", options.batch, "sequences of a step", {.least = 1, .most = 1024});
  settings.add("seeds", options.seeds, "runs, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("rate", options.rate, "learning rate", {.least = 1e-6, .most = 1});
  settings.add("seed", options.seed, "of the first run");
}

// The first token is one of those to copy, the others are fillers. The label is the first token.
TensorMap copy_batch(int64_t count, int64_t distance, Rng& rng) {
  std::vector<int64_t> ids, labels;
  for (int64_t b = 0; b < count; ++b) {
    labels.push_back(static_cast<int64_t>(rng.below(kCopied)));
    ids.push_back(labels.back());
    for (int64_t i = 0; i < distance; ++i) ids.push_back(kCopied + static_cast<int64_t>(rng.below(kCopied)));
  }
  return {{"input_ids", Tensor::from(ids, {count, distance + 1}, kCpu)}, {"labels", Tensor::from(labels, {count}, kCpu)}};
}

// Embeddings, one layer, and a linear layer on its output at the last token.
Model copying_model(bool recurrent, const CopyOptions& options, int64_t distance, uint64_t seed) {
  auto params = std::make_unique<Params>(seed);
  const int64_t D = options.width, N = distance + 1;
  const Scope scope(*params, initializer::original(D));
  const Embedding words(scope / "words", 2 * kCopied, D);
  const Linear head(scope / "classifier", D, kCopied);
  Recurrent layer;
  MultiHeadAttention attention;
  Tensor positions;
  if (recurrent) {
    layer = make_recurrent(scope / "recurrent", RecurrentKind::lstm, D, D);
  } else {
    attention = make_multi_head(scope / "attention", {.width = D, .heads = 4});
    positions = scope.get("positions", {1, N, D}, initializer::normal(0.1f), {.decays = false});
  }
  const auto forward = [=](const TensorMap& inputs, const ForwardOptions&) {
    const Tensor x = words(required_input(inputs, "input_ids"));  // (B, N, D)
    const int64_t B = x.size(0);
    const Tensor last =
        recurrent ? layer(x, {}, layer.start(B)).second.h : reshape(slice(x + attention(x + positions), 1, N - 1, N), {B, D});
    TensorMap out{{"logits", head(last)}};
    out["loss"] = cross_entropy(out["logits"], required_input(inputs, "labels"));
    return out;
  };
  static const Architecture copying{.name = "CopyingNetwork",
                                    .task = ModelTask::sequence_classification,
                                    .family = std::make_shared<const Family>(Family{.tokens = true})};
  return {{.run = forward, .inputs = {"input_ids", "labels"}}, std::move(params), copying, Json::object(), Json()};
}

// Trains until nine of ten are right, or to the end.
struct CopyRun {
  double steps = 0, accuracy = 0;
  bool learned = false;
};

CopyRun run_copying(bool recurrent, const CopyOptions& options, int64_t distance, uint64_t seed) {
  const Model model = copying_model(recurrent, options, distance, seed);
  OptimizerStep optimizer_step(model, {.weight_decay = 0});
  Rng rng(100 + seed), test_rng(200 + seed);
  CopyRun out;
  for (int64_t step = 1; step <= options.steps; ++step) {
    optimizer_step.zero_grad();
    backward(model(copy_batch(options.batch, distance, rng)).at("loss"));
    optimizer_step.step(options.rate);
    out.steps = static_cast<double>(step);
    if (step % kTestEvery != 0 && step != options.steps) continue;
    const NoGrad no_grad;
    const TensorMap test = copy_batch(kTestBatch, distance, test_rng);
    const std::vector<int64_t> labels = test.at("labels").to_vector<int64_t>(),
                               guesses = argmax(model(test).at("logits")).to_vector<int64_t>();
    double right = 0;
    for (size_t i = 0; i < labels.size(); ++i) right += labels[i] == guesses[i];
    out.accuracy = right / static_cast<double>(kTestBatch);
    out.learned = out.accuracy >= 0.9;
    if (out.learned) break;
  }
  return out;
}

struct CopyingLayer {
  std::string name;
  bool recurrent;
  std::vector<Trials> accuracy = {};            // by distance
  std::vector<std::vector<double>> steps = {};  // by distance and seed
  std::vector<int64_t> learned = {};            // runs that got nine of ten right
};

Report run_copies(const CopyOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.width % 4 == 0, "L49: width=", options.width, ", expected a multiple of 4");
  std::vector<CopyingLayer> layers{{"LSTM", true}, {"attention", false}};
  std::vector<double> distances;
  for (int64_t i = 0, distance = options.nearest; i < options.distances; ++i, distance *= 4)
    distances.push_back(static_cast<double>(distance));
  for (CopyingLayer& layer : layers)
    for (const double distance : distances) {
      layer.accuracy.push_back({.values = {}, .samples = static_cast<double>(kTestBatch)});
      layer.steps.emplace_back();
      layer.learned.push_back(0);
      for (int64_t i = 0; i < options.seeds; ++i) {
        progress(layer.name + ", distance " + number_text(distance) + ", run " + std::to_string(i + 1));
        const CopyRun run = run_copying(layer.recurrent, options, static_cast<int64_t>(distance), options.seed + static_cast<uint64_t>(i));
        layer.accuracy.back().values.push_back(run.accuracy);
        layer.steps.back().push_back(run.steps);
        layer.learned.back() += run.learned;
      }
    }
  const CopyingLayer &lstm = layers[0], &attention = layers[1];
  Report report;
  Table table{.title = "Steps until nine of ten are right", .columns = {"distance"}};
  Lines lines{.across = {"distance", true}, .up = {"steps", true}};
  for (const CopyingLayer& layer : layers) {
    table.columns.push_back(layer.name + ": mean steps");
    table.columns.push_back(layer.name + ": runs that learned it");
    Series series{.name = layer.name, .x = distances, .mark = Mark::both};
    for (const std::vector<double>& each : layer.steps) {
      series.y.push_back(mean_of(each));
      series.low.push_back(*std::min_element(each.begin(), each.end()));
      series.high.push_back(*std::max_element(each.begin(), each.end()));
    }
    lines.series.push_back(std::move(series));
  }
  for (size_t d = 0; d < distances.size(); ++d) {
    std::vector<Cell> row{distances[d]};
    for (const CopyingLayer& layer : layers) {
      row.emplace_back(mean_of(layer.steps[d]));
      row.emplace_back(std::to_string(layer.learned[d]) + " of " + std::to_string(options.seeds));
    }
    table.rows.push_back(std::move(row));
  }
  // Ratios of steps, run by run. Runs that end without having learned it would need more steps: the ratios are larger then.
  const auto lowest_ratio = [](const std::vector<double>& more, const std::vector<double>& less) {
    std::vector<double> logs;
    for (size_t i = 0; i < more.size(); ++i) logs.push_back(std::log(more[i] / less[i]));
    return std::exp(confidence(logs).low);
  };
  const double growth = lowest_ratio(lstm.steps.back(), lstm.steps.front()), more = lowest_ratio(lstm.steps.back(), attention.steps.back());
  const auto steps_text = [&](const CopyingLayer& layer, size_t d) {
    return std::to_string(std::lround(mean_of(layer.steps[d]))) +
           (layer.learned[d] < options.seeds ? " steps (the limit; not every run learned it)" : " steps");
  };
  const size_t last = distances.size() - 1;
  report.statement = "Until nine of ten first tokens are copied over a distance of " + number_text(distances[0]) +
                     " tokens, the LSTM trains for " + steps_text(lstm, 0) + " and attention for " + steps_text(attention, 0) + "; over " +
                     number_text(distances[last]) + " tokens, for " + steps_text(lstm, last) + " and for " + steps_text(attention, last) +
                     ". In the LSTM the first token passes through one state for every token in between; attention reaches it in one step.";
  report.tables = {std::move(table)};
  report.figures.push_back(
      figure("Steps until the first token is copied",
             "Mean over runs; bands from the lowest to the highest. Runs end after " + std::to_string(options.steps) + " steps.",
             Plot{.body = std::move(lines)}));
  report.measured = {at_least("LSTM's steps over attention's at the largest distance, lower bound", 1, more),
                     at_least("LSTM's steps at the largest distance over those at the smallest, lower bound", 1, growth)};
  if (attention.learned[last] < options.seeds || lstm.learned[0] < options.seeds)
    report.undecided = report.statement +
                       " Attention over the largest distance, or the LSTM over the smallest, did not learn it in every run: too few steps.";
  else
    report.measured.push_back(at_least("attention at the largest distance: accuracy, mean", 0.9, attention.accuracy[last].interval().mean));
  return report;
}

}  // namespace

Experiment copy_distance() {
  return {.number = "L49",
          .name = "copy-distance",
          .topic = Topic::learning,
          .title = "Copying a token over a distance",
          .claim =
              "The farther back a token is, the longer a recurrent layer takes to learn to copy it; over a large distance attention needs "
              "fewer steps.",
          .setup =
              "An LSTM and a layer of attention, each between an embedding and a linear layer, are trained to name the first token of a "
              "sequence at its last. Training ends when nine of ten new sequences are right.",
          .budget = {"steps"},
          .prepare = prepared(declare_copying, run_copies)};
}

}  // namespace heed::lab
