// L39: a small convolutional network against a small vision transformer as the training set grows, both trained to the end of learning.
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/architecture.h"
#include "heed/models/parts.h"

namespace heed::lab {
namespace {

struct SetSizeOptions {
  ImageTrainingRuns runs = {.images = 6480, .seeds = 3};
  int64_t sizes = 3, steps = 1600, channels = 16;
};

void declare_set_size(Settings& settings, SetSizeOptions& options, Size size) {
  if (size == Size::full) options.runs.images = 19440, options.runs.seeds = 4, options.sizes = 4, options.steps = 6000;
  options.runs.declare(settings, false);
  settings.add("sizes", options.sizes, "number of training sets, each a third of the next", {.least = 2, .most = 6});
  settings.add("steps", options.steps, "training steps for the largest set; half as many for each smaller one", {.least = 1, .most = 1e6});
  settings.add("channels", options.channels, "of the first convolution; each of the next has twice as many", {.least = 1, .most = 256});
}

// 3 x 3 convolution, batch norm (Ioffe and Szegedy 2015) and ReLU.
struct NormedConv {
  Tensor weight, scale, shift;  // (O, C, 3, 3), (O), (O)
  BatchNorm state;

  NormedConv(const Scope& scope, int64_t in, int64_t out)
      : weight(scope.get("weight", {out, in, 3, 3}, initializer::kaiming_normal())),
        scale(scope.get("norm.weight", {out}, initializer::ones(), {.decays = false})),
        shift(scope.get("norm.bias", {out}, initializer::zeros(), {.decays = false})),
        state{.running_mean = scope.get("norm.running_mean", {out}, initializer::zeros(), {.learned = false, .decays = false}),
              .running_variance = scope.get("norm.running_var", {out}, initializer::ones(), {.learned = false, .decays = false})} {}

  Tensor operator()(const Tensor& x, Mode mode) const {  // (B, C, Y, X) -> (B, O, Y, X)
    BatchNorm now = state;
    now.training = mode.training();
    return relu(batch_norm(conv2d(x, weight, {}, {.padding = {1, 1}}), scale, shift, now));
  }
};

const Architecture kSmallConvolutionalNetwork{.name = "SmallConvolutionalNetwork",
                                              .task = ModelTask::image_classification,
                                              .family = std::make_shared<const Family>(Family{.pixels = true})};

// Three such convolutions with max pooling after the first two, the mean over pixels, and a linear layer.
Model small_convolutional_network(const Json& json, int64_t channels, uint64_t seed) {
  auto params = std::make_unique<Params>(seed);
  const Scope scope(*params, initializer::original(4 * channels));
  const Config config(json, "config");
  const std::vector<NormedConv> layers{{scope / "convolution.0", 3, channels},
                                       {scope / "convolution.1", channels, 2 * channels},
                                       {scope / "convolution.2", 2 * channels, 4 * channels}};
  const Linear head(scope / "classifier", 4 * channels, config.labels());
  const auto forward = [=](const TensorMap& inputs, const ForwardOptions& forward_options) {
    Tensor x = required_input(inputs, "pixel_values");
    for (size_t i = 0; i < layers.size(); ++i)
      x = i == 0 ? layers[i](x, forward_options.mode) : layers[i](max_pool2d(x), forward_options.mode);
    TensorMap out{{"logits", head(mean(x, {2, 3}))}};
    const Tensor labels = optional_input(inputs, "labels");
    if (labels.defined()) out["loss"] = classification_loss(out["logits"], labels, config, forward_options);
    return out;
  };
  return {{.run = forward, .inputs = {"pixel_values", "labels"}}, std::move(params), kSmallConvolutionalNetwork, json, Json()};
}

// A larger set takes longer to learn, though not as many times as it is larger: equal steps would stop before its end.
struct TrainingSet {
  int64_t images = 0, steps = 0;
};

std::vector<TrainingSet> training_sets(const SetSizeOptions& options) {  // the smallest first
  std::vector<TrainingSet> out{{options.runs.images, options.steps}};
  while (std::ssize(out) < options.sizes) {
    const TrainingSet next{out.front().images / 3, std::max<int64_t>(1, out.front().steps / 2)};
    out.insert(out.begin(), next);
  }
  return out;
}

struct SetSizeCurve {
  std::string name;
  std::vector<Trials> accuracy = {};  // by training set size
  std::vector<Trials> fit = {};       // training loss, mean over the last tenth of the steps
  double parameters = 0, work = 0;
};

constexpr int64_t kParts = 10;  // of the steps, each with its mean training loss

Trials train_on_set(SetSizeCurve& curve, const SetSizeOptions& options, bool convolutional, const TrainingSet& set,
                    const ProgressCallback& progress) {
  Trials out;
  curve.fit.emplace_back();
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.runs.seeds; ++i) {
    const uint64_t seed = options.runs.seed + static_cast<uint64_t>(i);
    TrainingRun run = options.runs.for_seed(seed);
    if (options.runs.data == "shapes") run.add({"data=shapes:" + std::to_string(options.runs.images)});
    const int64_t parts = set.steps >= kParts ? kParts : 1;
    run.add({setting("limit", set.images), setting("epochs", parts)});
    run.add(options.runs.transformer());
    run.modify_task = [&options, &set, parts, convolutional, seed](Task& task) {
      if (convolutional) *task.model = small_convolutional_network(task.model->config(), options.channels, seed);
      // Epochs of equal steps, for any size of the set.
      task.batches = [one = task.batches, steps = set.steps / parts](int64_t part) {
        std::vector<std::vector<int64_t>> all;
        int64_t skipped = part * steps;
        for (int64_t epoch = 0; std::ssize(all) < steps; ++epoch)
          for (auto& batch : one(epoch)) {
            if (skipped-- > 0) continue;
            all.push_back(std::move(batch));
            if (std::ssize(all) == steps) break;
          }
        return all;
      };
    };
    const TrainedModel trained =
        run_training(run, folder, curve.name + ", " + std::to_string(set.images) + " images, run " + std::to_string(i + 1), progress);
    out.add(trained);
    curve.fit.back().values.push_back(trained.losses.back());
    curve.parameters = static_cast<double>(trained.model->params().count()),
    curve.work = static_cast<double>(work_of_image(*trained.model));
  }
  return out;
}

// The gap on the smallest set minus the gap on the largest, per seed.
Interval closing_of(const SetSizeCurve& convolution, const SetSizeCurve& transformer) {
  std::vector<double> values;
  for (size_t i = 0; i < convolution.accuracy[0].values.size(); ++i)
    values.push_back(convolution.accuracy.front().values[i] - transformer.accuracy.front().values[i] -
                     convolution.accuracy.back().values[i] + transformer.accuracy.back().values[i]);
  return confidence(values);
}

void judge_gap(Report& report, const SetSizeCurve& convolution, const SetSizeCurve& transformer, const std::vector<Interval>& gaps,
               const std::vector<TrainingSet>& sets) {
  const Interval closing = closing_of(convolution, transformer);
  const auto gain = [](const SetSizeCurve& curve) { return difference(curve.accuracy.back(), curve.accuracy.front()); };
  const auto gap_on = [&](const TrainingSet& set, const Interval& gap) {
    return points_text(gap) + " on " + std::to_string(set.images) + " images (" + std::to_string(set.steps) + " steps)";
  };
  const std::string found =
      "The convolutional network leads by " + gap_on(sets.front(), gaps.front()) + " and by " + gap_on(sets.back(), gaps.back()) + ". ";
  report.statement =
      found + "Locality is built into the convolutional network; the transformer must learn it, which takes data: the gap closes by " +
      points_text(closing) + " as the set grows. " +
      (gain(convolution).low > 0 ? "Both gain from more images, the transformer more."
                                 : "The transformer gains from more images; for the convolutional network no gain is measurable.");
  if (closing.low > 0 && gain(transformer).low > 0) {
    report.measured.push_back(at_least("gap on the smallest set minus gap on the largest: lower bound", 0, closing.low));
    report.measured.push_back(at_least("transformer: gain from more images, lower bound", 0, gain(transformer).low));
  } else if (closing.high < 0) {
    report.measured.push_back(at_least("gap on the smallest set minus gap on the largest: upper bound", 0, closing.high));
  } else {
    report.undecided = found + "The gap closes by " + points_text(closing) +
                       ", which is within the interval of its measurement: too few seeds, or too few steps for the transformer to use the "
                       "larger sets.";
  }
  report.measured.push_back(
      at_least("transformer: parameters relative to convolution", 1, transformer.parameters / convolution.parameters));
}

Report run_set_size(const SetSizeOptions& options, const ProgressCallback& progress) {
  const std::vector<TrainingSet> sets = training_sets(options);
  std::vector<SetSizeCurve> curves{{"convolutional network"}, {"vision transformer"}};
  for (size_t kind = 0; kind < curves.size(); ++kind)
    for (const TrainingSet& set : sets) curves[kind].accuracy.push_back(train_on_set(curves[kind], options, kind == 0, set, progress));
  const SetSizeCurve &convolution = curves[0], &transformer = curves[1];
  Report report;
  Table table{.title = "Test accuracy, 95 % CI",
              .columns = {"images", "steps", convolution.name, transformer.name, "difference", "training loss at the end, convolution",
                          "transformer"}};
  std::vector<Interval> gaps;
  for (size_t s = 0; s < sets.size(); ++s) {
    gaps.push_back(difference(convolution.accuracy[s], transformer.accuracy[s]));
    table.rows.push_back({static_cast<double>(sets[s].images), static_cast<double>(sets[s].steps),
                          interval_text(convolution.accuracy[s].interval()), interval_text(transformer.accuracy[s].interval()),
                          points_text(gaps.back()), mean_of(convolution.fit[s].values), mean_of(transformer.fit[s].values)});
  }
  judge_gap(report, convolution, transformer, gaps, sets);
  Table costs{.title = "Costs", .columns = {"model", "parameters", "multiply-adds per image"}};
  Lines lines{.across = {"training images", true}, .up = {"test accuracy", false, 0.0}};
  for (const SetSizeCurve& curve : curves) {
    costs.rows.push_back({curve.name, curve.parameters, curve.work});
    Series series{.name = curve.name, .mark = Mark::both};
    for (size_t s = 0; s < sets.size(); ++s) {
      const Interval accuracy = curve.accuracy[s].interval();
      series.x.push_back(static_cast<double>(sets[s].images)), series.y.push_back(accuracy.mean);
      series.low.push_back(accuracy.low), series.high.push_back(accuracy.high);
    }
    lines.series.push_back(std::move(series));
  }
  report.tables = {std::move(table), std::move(costs)};
  report.figures.push_back(
      figure("Accuracy by the size of the training set",
             "A set three times as large is trained for twice as many steps of 64 images. Bands: 95 % confidence interval of the mean over "
             "runs.",
             Plot{.body = std::move(lines)}));
  return report;
}

}  // namespace

Experiment training_set_size() {
  return {
      .number = "L39",
      .name = "training-set-size",
      .topic = Topic::learning,
      .title = "Convolution or attention, by training set size",
      .claim =
          "A small convolutional network learns more from few images than a vision transformer; the gap closes as the training set grows.",
      .setup =
          "A small convolutional network and a vision transformer are trained on training sets of growing size, with several seeds. Both "
          "get the same steps on the same set, and more on a larger set, which takes longer to learn. Test accuracies are compared by 95 % "
          "confidence intervals of the mean difference.",
      .budget = {"steps"},
      .gpu = true,
      .prepare = prepared(declare_set_size, run_set_size)};
}

}  // namespace heed::lab
