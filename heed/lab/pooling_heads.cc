// L28: four poolings (CLS, GAP, MAP, flatten), trained with the same encoder, images and steps.
#include <algorithm>

#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/config.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct PoolingOptions {
  ImageTrainingRuns runs;
  int64_t early = 4;

  int64_t early_epochs() const { return std::min(early, runs.epochs); }
};

void declare_pooling(Settings& settings, PoolingOptions& options, Size size) {
  options.runs.epochs = 20, options.runs.seeds = 4;
  if (size == Size::full) options.runs.images = 6000, options.runs.epochs = 40, options.runs.seeds = 6;
  options.runs.declare(settings);
  settings.add("early", options.early, "first epochs, over which the speed of learning is compared", {.least = 1, .most = 1000});
}

struct PoolingSizes {
  int64_t N, D, F, K, layers, classes;  // patches, width, feed-forward width, numbers per patch

  explicit PoolingSizes(const Model& model) {
    const Config config(model.config(), "config.json");
    std::vector<int64_t> image = config.sizes("image_size", {224});
    image.resize(2, image[0]);
    const int64_t P = config.size("patch_size", 16);
    N = (image[0] / P) * (image[1] / P);
    D = config.size("hidden_size", 0), F = config.size("intermediate_size", 0);
    K = 3 * P * P;
    layers = config.size("num_hidden_layers", 0), classes = config.labels();
  }

  // Patch embedding, positions, layers with two norms each, final norm and head.
  int64_t parameters(const std::string& pooling) const {
    const int64_t first = pooling == "cls", wide = D * F + F + F * D + D, attention = 4 * (D * D + D);
    const int64_t pooling_parameters = first * D + (pooling == "map" ? D + attention + 2 * D + wide : 0);
    return D * (K + 1) + (N + first) * D + layers * (attention + wide + 4 * D) + 2 * D + pooling_parameters +
           head_inputs(pooling) * classes + classes;
  }
  int64_t multiply_adds(const std::string& pooling) const {  // per image
    const int64_t T = N + (pooling == "cls"), layer = T * (4 * D * D + 2 * D * F) + 2 * T * T * D;
    const int64_t query =
        2 * N * D * D + 2 * D * D + 2 * N * D + 2 * D * F;  // MAP: one learned query over N tokens, and a feed-forward layer
    return N * D * K + layers * layer + (pooling == "map" ? query : 0) + head_inputs(pooling) * classes;
  }
  int64_t head_inputs(const std::string& pooling) const { return pooling == "flatten" ? N * D : D; }
};

struct PoolingKind {
  std::string key, name;
  Trials accuracy = {}, early = {};              // at the end, and the mean over the first epochs
  std::vector<std::vector<double>> curves = {};  // test accuracy by epoch, one per seed
  std::vector<double> losses = {};               // training loss, mean over seeds
  int64_t parameters = 0, work = 0;
};

void train_pooling(PoolingKind& kind, const PoolingOptions& all, Report& report, const ProgressCallback& progress) {
  const ImageTrainingRuns& options = all.runs;
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.seeds; ++i) {
    TrainingRun run = options.for_seed(options.seed + static_cast<uint64_t>(i));
    run.add(options.transformer());
    run.add({"pooling=" + kind.key});
    run.curves = true;
    const TrainedModel trained = run_training(run, folder, kind.key + ", run " + std::to_string(i + 1), progress);
    kind.curves.push_back(trained.curve("accuracy"));
    kind.accuracy.values.push_back(kind.curves.back().back());
    kind.accuracy.samples = trained.samples;
    kind.early.values.push_back(mean_of(std::span(kind.curves.back()).first(static_cast<size_t>(all.early_epochs()))));
    kind.losses.resize(trained.losses.size());
    for (size_t e = 0; e < trained.losses.size(); ++e) kind.losses[e] += trained.losses[e] / static_cast<double>(options.seeds);
    if (i > 0) continue;
    const PoolingSizes sizes(*trained.model);
    kind.parameters = trained.model->params().count(), kind.work = work_of_image(*trained.model);
    const auto add = [&](const char* what, int64_t predicted, int64_t measured) {
      report.measured.push_back(equal_to(kind.key + ": " + what, static_cast<double>(predicted), static_cast<double>(measured)));
    };
    add("parameters", sizes.parameters(kind.key), kind.parameters);
    add("multiply-adds per image", sizes.multiply_adds(kind.key), kind.work);
    report.measured.push_back(equal_to(kind.key + ": steps", static_cast<double>(options.epochs * ((options.images + 63) / 64)),
                                       static_cast<double>(trained.steps)));
  }
}

// The order of the heads by their mean accuracy, best first.
std::string order_of(std::vector<PoolingKind> kinds, Trials PoolingKind::*when) {
  std::sort(kinds.begin(), kinds.end(),
            [&](const PoolingKind& a, const PoolingKind& b) { return mean_of((a.*when).values) > mean_of((b.*when).values); });
  std::string out;
  for (const PoolingKind& kind : kinds) out += (out.empty() ? "" : ", ") + kind.name + " " + percent_text(mean_of((kind.*when).values));
  return out;
}

// The best of the other heads at that time.
const PoolingKind& best_other(const std::vector<PoolingKind>& kinds, Trials PoolingKind::*when) {
  const PoolingKind* best = &kinds[0];
  for (size_t i = 1; i < 3; ++i)
    if (mean_of((kinds[i].*when).values) > mean_of((best->*when).values)) best = &kinds[i];
  return *best;
}

// Flatten leads all others early and is overtaken at the end: both differences must be larger than their intervals.
void judge_pooling(Report& report, const std::vector<PoolingKind>& kinds, const PoolingOptions& options) {
  const PoolingKind &flatten = kinds[3], &second = best_other(kinds, &PoolingKind::early),
                    &best = best_other(kinds, &PoolingKind::accuracy);
  const Interval early = difference(flatten.early, second.early), late = difference(best.accuracy, flatten.accuracy);
  const std::string order = "Mean test accuracy over the first " + std::to_string(options.early_epochs()) + " of " +
                            std::to_string(options.runs.epochs) + " epochs: " + order_of(kinds, &PoolingKind::early) +
                            "; at the end: " + order_of(kinds, &PoolingKind::accuracy) + ". First, all tokens minus " + second.name +
                            " is " + points_text(early) + "; at the end, " + best.name + " minus all tokens is " + points_text(late) + ". ";
  if ((early.low > 0 || early.high < 0) && late.low > 0) {
    report.statement =
        order +
        "A linear layer on all tokens has weights of its own for every position and learns fastest; it also overfits to positions and is "
        "overtaken. Which head is best depends on the budget, so a comparison after one number of steps does not decide it.";
    report.measured.insert(report.measured.begin(),
                           {at_least("first epochs: all tokens minus " + second.name + ", the best other head, lower bound", 0, early.low),
                            at_least("at the end: " + best.name + " minus all tokens, lower bound", 0, late.low)});
  } else {
    report.undecided = order + (late.low <= 0 ? "The run is too short, or has too few seeds, to tell which head gets furthest."
                                              : "The first epochs cannot tell which head learns fastest.");
  }
}

Report run_pooling(const PoolingOptions& options, const ProgressCallback& progress) {
  std::vector<PoolingKind> kinds{{"cls", "class token"}, {"gap", "mean"}, {"map", "attention"}, {"flatten", "all tokens"}};
  Report report;
  for (PoolingKind& kind : kinds) train_pooling(kind, options, report, progress);

  Table heads{.title = "The four heads",
              .columns = {"head", "parameters", "multiply-adds", "test accuracy, 95 % CI", "last training loss"}};
  Table apart{.title = "Differences of accuracy per run", .columns = {"head", "minus", "first epochs, 95 % CI", "at the end"}};
  BarSet bars{.name = "test accuracy"};
  std::vector<std::string> groups;
  std::vector<Series> curves, accuracies;
  for (const PoolingKind& kind : kinds) {
    const Interval accuracy = kind.accuracy.interval();
    heads.rows.push_back(
        {kind.name, static_cast<double>(kind.parameters), static_cast<double>(kind.work), interval_text(accuracy), kind.losses.back()});
    groups.push_back(kind.name);
    bars.values.push_back(accuracy.mean), bars.low.push_back(accuracy.low), bars.high.push_back(accuracy.high);
    accuracies.push_back(mean_curve(kind.name, kind.curves));
    curves.push_back(
        {kind.name, steps(1, static_cast<double>(kind.losses.size()), static_cast<int>(kind.losses.size())), kind.losses, Mark::both});
  }
  for (size_t more = 0; more < kinds.size(); ++more)
    for (size_t less = 0; less < more; ++less)
      apart.rows.push_back({kinds[more].name, kinds[less].name, points_text(difference(kinds[more].early, kinds[less].early)),
                            points_text(difference(kinds[more].accuracy, kinds[less].accuracy))});
  judge_pooling(report, kinds, options);
  report.tables = {std::move(heads), std::move(apart)};
  report.figures.push_back(figure("Test accuracy", "Mean over runs with its 95 % confidence interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {bars}}}));
  report.figures.push_back(figure("Test accuracy by epoch", "Mean over runs; bands from the lowest to the highest. The lead changes.",
                                  Plot{.body = Lines{.across = {"epoch"}, .up = {"accuracy", false, 0.0}, .series = accuracies}}));
  report.figures.push_back(
      figure("Training loss", "Mean over runs.", Plot{.body = Lines{.across = {"epoch"}, .up = {"loss"}, .series = curves}}));
  return report;
}

}  // namespace

Experiment pooling_heads() {
  return {.number = "L28",
          .name = "pooling-heads",
          .topic = Topic::learning,
          .title = "Four ways to pool tokens",
          .claim =
              "With the same encoder and images, the best way to pool tokens depends on the length of training: separate weights for "
              "every token learn fastest and are overtaken.",
          .formula =
              R"(\text{CLS: } W y_0, \quad \text{GAP: } W \frac{1}{N} \sum_n y_n, \quad \text{MAP: } W \, \mathrm{attend}(u, Y), \quad )"
              R"(\text{flatten: } \sum_n W_n y_n)",
          .setup =
              "Small vision transformers that differ only in their pooling are trained from scratch on the same images with several "
              "seeds. Parameters and multiply-adds are counted, and test accuracies are compared by 95 % confidence intervals of the mean "
              "difference, over the first epochs and at the end.",
          .budget = {"epochs"},
          .gpu = true,
          .prepare = prepared(declare_pooling, run_pooling)};
}

}  // namespace heed::lab
