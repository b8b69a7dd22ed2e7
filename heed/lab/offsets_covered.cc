// L45: do heads with Gaussian positions become a convolution? Which of the K x K offsets a trained layer covers (Cordonnier, Loukas and
// Jaggi 2020, section 4).
#include <algorithm>
#include <cmath>

#include "heed/lab/coverage.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/gaussian_heads.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/training_job.h"

namespace heed::lab {
namespace {

struct CoverageOptions {
  int64_t side = 3, epochs = 12, images = 1000, width = 32, layers = 3, heads = 9, seeds = 3;
  float rate = 5e-3f;
  uint64_t seed = 1;
};

void declare_coverage(Settings& settings, CoverageOptions& options, Size size) {
  if (size == Size::full) options.epochs = 30, options.images = 4000, options.width = 64, options.seeds = 5;
  settings.add("side", options.side, "K: of the kernel whose K x K offsets are looked for", {.least = 1, .most = 9});
  settings.add("epochs", options.epochs, "of training", {.least = 0, .most = 1000});
  settings.add("images", options.images, "training images (shapes)", {.least = 50, .most = 1e5});
  settings.add("width", options.width, "of tokens", {.least = 4, .most = 512});
  settings.add("layers", options.layers, "of the encoder", {.least = 1, .most = 12});
  settings.add("heads", options.heads, "of each layer", {.least = 1, .most = 81});
  settings.add("rate", options.rate, "learning rate of AdamW", {.least = 1e-6, .most = 1});
  settings.add("seeds", options.seeds, "runs, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("seed", options.seed, "of the first run");
}

constexpr double kOneHot = 0.95;  // largest weight from which a head counts as one tap

struct CoverageRun {
  std::vector<std::vector<LayerCoverage>> scores = {};  // by epoch and layer
  double accuracy = NAN;
};

CoverageRun train_coverage(const CoverageOptions& options, uint64_t seed, const ProgressCallback& progress) {
  TrainingJob training("classify");
  training.apply({"preset=gaussian-small", "data=shapes:" + std::to_string(options.images), "patch=4", setting("width", options.width),
                  setting("layers", options.layers), setting("heads", options.heads), setting("feed_forward", 2 * options.width),
                  "optimizer=adamw", setting("rate", options.rate), "batch=50", "dropout=0", "pad=0", "flip=false", setting("seed", seed)});
  const Task task = training.make();
  const TrainOptions& train_options = training.train_options();
  CoverageRun out;
  const auto look = [&] {
    std::vector<LayerCoverage>& layers = out.scores.emplace_back();
    for (const GaussianLayer& layer : gaussian_heads(*task.model).layers) layers.push_back(coverage_of(layer, options.side));
  };
  OptimizerStep optimizer_step(*task.model, train_options);
  Rng rng(seed);
  const int64_t steps = options.epochs * std::ssize(task.batches(0));
  int64_t step = 0;
  look();
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const std::vector<int64_t>& samples : task.batches(epoch)) {
      const StepOutput outcome = task.forward(task.batch(epoch, samples), {.mode = training_with(rng)});
      optimizer_step.zero_grad();
      backward(outcome.loss);
      optimizer_step.step(static_cast<float>(rate_at(train_options, step++, steps)));
    }
    look();
    progress("run " + std::to_string(seed) + ", epoch " + std::to_string(epoch + 1) + " of " + std::to_string(options.epochs));
  }
  const NoGrad no_grad;
  for (const auto& [name, value] : task.evaluate().figures)
    if (name == "accuracy") out.accuracy = value;
  return out;
}

Report run_coverage(const CoverageOptions& options, const ProgressCallback& progress) {
  std::vector<CoverageRun> runs;
  for (int64_t i = 0; i < options.seeds; ++i) runs.push_back(train_coverage(options, options.seed + static_cast<uint64_t>(i), progress));
  const auto layers = static_cast<size_t>(options.layers);
  const auto curve_of = [&](double LayerCoverage::*what, size_t layer) {
    std::vector<std::vector<double>> curves;
    for (const CoverageRun& run : runs) {
      std::vector<double>& curve = curves.emplace_back();
      for (const std::vector<LayerCoverage>& epoch : run.scores) curve.push_back(epoch.at(layer).*what);
    }
    Series series = mean_curve("layer " + std::to_string(layer), curves);
    for (double& x : series.x) x -= 1;  // before training: epoch 0
    return series;
  };
  std::vector<double> accuracy, before, after, sharp, one_hot_before, one_hot_after, change;
  for (const CoverageRun& run : runs) {
    const auto mean_over = [&](const std::vector<LayerCoverage>& epoch, double LayerCoverage::*what) {
      double sum = 0;
      for (const LayerCoverage& layer : epoch) sum += layer.*what;
      return sum / static_cast<double>(epoch.size());
    };
    accuracy.push_back(run.accuracy);
    before.push_back(mean_over(run.scores.front(), &LayerCoverage::covered));
    after.push_back(mean_over(run.scores.back(), &LayerCoverage::covered));
    sharp.push_back(mean_over(run.scores.back(), &LayerCoverage::sharp));
    one_hot_before.push_back(mean_over(run.scores.front(), &LayerCoverage::one_hot));
    one_hot_after.push_back(mean_over(run.scores.back(), &LayerCoverage::one_hot));
    change.push_back(after.back() - before.back());
  }
  Report report;
  const auto offsets = static_cast<double>(options.layers * options.side * options.side);  // of one run
  const double possible = std::min(1.0, static_cast<double>(options.heads) / static_cast<double>(options.side * options.side));
  const std::string K = std::to_string(options.side), kernel = K + " × " + K;
  const Interval moved = confidence(change);
  const bool small = std::abs(moved.mean) < 1 / static_cast<double>(options.side * options.side);  // few runs may all change by the same
  report.statement = number_text(static_cast<double>(options.heads)) + " heads could cover " + number_text(100 * possible) + " % of the " +
                     kernel + " offsets. Trained layers cover " + interval_text(share_confidence(after, offsets)) + ", before training " +
                     interval_text(share_confidence(before, offsets)) + ": a change of " + points_text(moved) +
                     (small            ? ", less than one offset per layer. "
                      : moved.low > 0  ? "; training moves centres onto the kernel. "
                      : moved.high < 0 ? "; training moves centres off the kernel. "
                                       : ", which is not measurable. ") +
                     "The largest weight of a head is " + number_text(mean_of(one_hot_after)) + " on average, " +
                     number_text(mean_of(one_hot_before)) + " before training" +
                     (mean_of(one_hot_after) <= kOneHot
                          ? ": a head is a blurred tap, and no layer is a plain convolution, though each could be one. Accuracy: "
                          : ": a head is close to one tap of a convolution. Accuracy: ") +
                     interval_text(share_confidence(accuracy)) + ".";
  report.measured.push_back(at_most("covered by trained layers, of what the theorem needs: upper bound", 0.999,
                                    share_confidence(after, offsets).high / possible));
  report.measured.push_back(
      at_most("offsets covered by a head with half of its weight there: share, mean", 0.9 * possible, mean_of(sharp)));
  report.measured.push_back(at_most("largest weight of a trained head, mean", kOneHot, mean_of(one_hot_after)));
  Table table{.title = "By layer, mean over runs",
              .columns = {"layer", "covered before", "covered after", "with half of a head's weight", "largest weight before", "after"}};
  Lines covered{.across = {"epoch"}, .up = {"covered", false, 0.0, 1.0}}, sharpness{.across = {"epoch"}, .up = {"weight", false, 0.0, 1.0}};
  for (size_t layer = 0; layer < layers; ++layer) {
    const Series cover = curve_of(&LayerCoverage::covered, layer), hot = curve_of(&LayerCoverage::one_hot, layer);
    table.rows.push_back({"layer " + std::to_string(layer), cover.y.front(), cover.y.back(),
                          curve_of(&LayerCoverage::sharp, layer).y.back(), hot.y.front(), hot.y.back()});
    covered.series.push_back(cover), sharpness.series.push_back(hot);
  }
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure("Coverage and sharpness by epoch",
                                  "Left: share of the " + kernel +
                                      " offsets that are nearest to the centre of some head. Right: the largest "
                                      "weight of a head, mean over heads. Bands from the lowest run to the highest.",
                                  {Plot{"covered", covered}, Plot{"largest weight", sharpness}}));
  const double chance = 0.1;
  if (confidence(accuracy).low <= 1.5 * chance)
    report.undecided = "After " + std::to_string(options.epochs) + " epochs accuracy is " + interval_text(share_confidence(accuracy)) +
                       ", little above chance: what heads become cannot be told.";
  return report;
}

}  // namespace

Experiment offsets_covered() {
  return {
      .number = "L45",
      .name = "offsets-covered",
      .topic = Topic::convolution,
      .title = "Do trained heads become a convolution?",
      .claim =
          "Heads with Gaussian positions could cover every offset of a $K \\times K$ kernel with one-hot weights; training leaves "
          "offsets uncovered and heads blurred.",
      .formula =
          R"(\text{covered} = \frac{1}{K^2} \left| \{ \delta \mid \delta = \operatorname{round}(-\Delta_h) \text{ for some } h \} \right|)",
      .setup =
          "Small encoders with Gaussian positions alone are trained on shapes. Before training and after every epoch, the offsets "
          "nearest to the centres of heads are compared with those of the kernel that the theorem of L19 builds, and the largest "
          "weight of each head is computed. The page that heed lab heads writes shows the same centres in motion.",
      .budget = {"epochs"},
      .prepare = prepared(declare_coverage, run_coverage)};
}

}  // namespace heed::lab
