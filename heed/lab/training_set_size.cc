// L29: a small convolutional network against a small vision transformer as there is more to learn from, with the same steps.
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/learn.h"
#include "heed/models/config.h"
#include "heed/models/parts.h"

namespace heed::lab {
namespace {

struct SetSizeOptions {
  PictureLessons lessons = {.pictures = 6480, .seeds = 3};
  int64_t sizes = 4, steps = 140, channels = 16;
};

void declare_set_size(Settings& settings, SetSizeOptions& options, Size size) {
  if (size == Size::full) options.lessons.pictures = 19440, options.lessons.seeds = 4, options.sizes = 5, options.steps = 480;
  options.lessons.declare(settings);
  settings.add("sizes", options.sizes, "how many sets, each a third of the next", {.least = 2, .most = 6});
  settings.add("steps", options.steps, "of learning, for every set", {.least = 1, .most = 1e6});
  settings.add("channels", options.channels, "of the first convolution; the next ones have twice as many each", {.least = 1, .most = 256});
}

// 3 x 3 convolution, batch norm (Ioffe and Szegedy 2015) and ReLU.
struct NormedConv {
  Tensor weight, scale, shift;  // (O, C, 3, 3), (O), (O)
  BatchNorm state;

  NormedConv(const Scope& scope, int64_t in, int64_t out)
      : weight(scope.get("weight", {out, in, 3, 3}, initial::kaiming_normal())),
        scale(scope.get("norm.weight", {out}, initial::ones(), {.decays = false})),
        shift(scope.get("norm.bias", {out}, initial::zeros(), {.decays = false})),
        state{.running_mean = scope.get("norm.running_mean", {out}, initial::zeros(), {.learned = false, .decays = false}),
              .running_variance = scope.get("norm.running_var", {out}, initial::ones(), {.learned = false, .decays = false})} {}

  Tensor operator()(const Tensor& x, Mode mode) const {  // (B, C, Y, X) -> (B, O, Y, X)
    BatchNorm now = state;
    now.training = mode.training();
    return relu(batch_norm(conv2d(x, weight, {}, {.padding = {1, 1}}), scale, shift, now));
  }
};

// Three such convolutions, the first two with their maps halved behind them, the mean over places, and a linear layer.
Model small_convolutional_network(const Json& json, int64_t channels, uint64_t seed) {
  auto params = std::make_unique<Params>(seed);
  const Scope scope(*params, initial::original(4 * channels));
  const Config config(json, "config");
  const std::vector<NormedConv> layers{{scope / "convolution.0", 3, channels},
                                       {scope / "convolution.1", channels, 2 * channels},
                                       {scope / "convolution.2", 2 * channels, 4 * channels}};
  const Linear head(scope / "classifier", 4 * channels, config.labels());
  const auto run = [=](const Named& inputs, const Ask& ask) {
    Tensor x = needed(inputs, "pixel_values");
    for (size_t i = 0; i < layers.size(); ++i) x = i == 0 ? layers[i](x, ask.mode) : layers[i](max_pool2d(x), ask.mode);
    Named out{{"logits", head(mean(x, {2, 3}))}};
    const Tensor labels = given(inputs, "labels");
    if (labels.defined()) out["loss"] = classification_loss(out["logits"], labels, config, ask);
    return out;
  };
  return {{.run = run, .inputs = {"pixel_values", "labels"}}, std::move(params), "SmallConvolutionalNetwork", json, Json()};
}

struct SetSizeCurve {
  std::string name;
  std::vector<Trials> right = {};  // by sizes
  double parameters = 0, work = 0;
};

Trials learn_from_set(SetSizeCurve& curve, const SetSizeOptions& options, bool convolutional, int64_t pictures, const Say& say) {
  Trials out;
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.lessons.seeds; ++i) {
    const uint64_t seed = options.lessons.seed + static_cast<uint64_t>(i);
    Lesson lesson = options.lessons.lesson(seed);
    if (options.lessons.data == "shapes") lesson.add({"data=shapes:" + std::to_string(options.lessons.pictures)});
    lesson.add({word("limit", pictures), "epochs=1"});
    lesson.add(options.lessons.transformer());
    lesson.set = [&options, convolutional, seed](Task& task) {
      if (convolutional) *task.model = small_convolutional_network(task.model->config(), options.channels, seed);
      // All steps as one epoch, whatever the size of the set.
      task.batches = [one = task.batches, steps = options.steps](int64_t) {
        auto all = one(0);
        for (int64_t epoch = 1; std::ssize(all) < steps; ++epoch)
          for (auto& batch : one(epoch)) all.push_back(std::move(batch));
        all.resize(static_cast<size_t>(steps));
        return all;
      };
    };
    const Learned learned =
        learn(lesson, folder, curve.name + ", " + std::to_string(pictures) + " pictures, run " + std::to_string(i + 1), say);
    out.values.push_back(learned.figure("accuracy"));
    curve.parameters = static_cast<double>(learned.model->params().count()),
    curve.work = static_cast<double>(work_of_picture(*learned.model));
  }
  return out;
}

Report run_set_size(const SetSizeOptions& options, const Say& say) {
  std::vector<int64_t> sizes{options.lessons.pictures};
  while (std::ssize(sizes) < options.sizes) sizes.insert(sizes.begin(), sizes.front() / 3);
  std::vector<SetSizeCurve> curves{{"convolutional network"}, {"vision transformer"}};
  for (size_t kind = 0; kind < curves.size(); ++kind)
    for (const int64_t size : sizes) curves[kind].right.push_back(learn_from_set(curves[kind], options, kind == 0, size, say));
  const SetSizeCurve &convolution = curves[0], &transformer = curves[1];
  Report report;
  report.statement =
      "With the same steps, the network of convolutions names more pictures rightly than the vision transformer, which has several times "
      "its parameters: that near pixels belong together is built into the one and has to be learned by the other. Both gain from more "
      "pictures; the transformer needs nine times as many for what convolutions make of the smallest set.";
  Table table{.title = "Test accuracy, 95 % of the mean", .columns = {"pictures", convolution.name, transformer.name, "difference"}};
  Trials everywhere{.values = std::vector<double>(static_cast<size_t>(options.lessons.seeds))};  // mean over sets
  for (size_t s = 0; s < sizes.size(); ++s) {
    const Trials apart = differences(convolution.right[s], transformer.right[s]);
    for (size_t i = 0; i < apart.values.size(); ++i) everywhere.values[i] += apart.values[i] / static_cast<double>(sizes.size());
    table.rows.push_back({static_cast<double>(sizes[s]), interval_text(convolution.right[s].interval()),
                          interval_text(transformer.right[s].interval()), interval_text(apart.interval())});
  }
  const auto gain = [](const SetSizeCurve& curve) { return differences(curve.right.back(), curve.right.front()).interval().low; };
  report.measured = {
      at_least("convolution less transformer, mean over sets: lower end", 0, everywhere.interval().low),
      at_least("convolution less transformer, the smallest set: lower end", 0,
               differences(convolution.right.front(), transformer.right.front()).interval().low),
      at_least("convolution: what more pictures gain, lower end", 0, gain(convolution)),
      at_least("transformer: what more pictures gain, lower end", 0, gain(transformer)),
      at_least("transformer: how many times the parameters", 2, transformer.parameters / convolution.parameters),
  };
  if (sizes.size() > 2)
    report.measured.push_back(at_least("convolution, less transformer with nine times the pictures: upper end", 0,
                                       differences(convolution.right[0], transformer.right[2]).interval().high));
  Table costs{.title = "Costs", .columns = {"model", "parameters", "multiply-adds of a picture"}};
  Lines lines{.across = {"pictures to learn from", true}, .up = {"test accuracy", false, 0.0}};
  for (const SetSizeCurve& curve : curves) {
    costs.rows.push_back({curve.name, curve.parameters, curve.work});
    Series series{.name = curve.name, .mark = Mark::both};
    for (size_t s = 0; s < sizes.size(); ++s) {
      const Interval right = curve.right[s].interval();
      series.x.push_back(static_cast<double>(sizes[s])), series.y.push_back(right.mean);
      series.low.push_back(right.low), series.high.push_back(right.high);
    }
    lines.series.push_back(std::move(series));
  }
  report.tables = {std::move(table), std::move(costs)};
  report.figures.push_back(
      figure("Accuracy by the size of the training set",
             std::to_string(options.steps) + " steps of 64 pictures each, whatever the set. Bands: 95 % of the mean over runs.",
             Plot{.body = std::move(lines)}));
  return report;
}

}  // namespace

Experiment training_set_size() {
  return {.number = "L29",
          .name = "training-set-size",
          .topic = Topic::learning,
          .title = "Convolution or attention, by what there is to learn from",
          .claim = "A small network of convolutions learns more from the same pictures than a vision transformer, be they few or many.",
          .prepare = prepared(declare_set_size, run_set_size)};
}

}  // namespace heed::lab
