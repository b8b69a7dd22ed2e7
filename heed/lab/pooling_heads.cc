// L28: four poolings (CLS, GAP, MAP, flatten), trained with the same encoder, images and steps.
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/config.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

void declare_pooling(Settings& settings, ImageTrainingRuns& options, Size size) {
  if (size == Size::full) options.images = 6000, options.epochs = 10, options.seeds = 6;
  options.declare(settings);
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
  Trials accuracy = {};
  std::vector<double> losses = {};  // training loss, mean over seeds
  int64_t parameters = 0, work = 0;
};

void train_pooling(PoolingKind& kind, const ImageTrainingRuns& options, Report& report, const ProgressCallback& progress) {
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.seeds; ++i) {
    TrainingRun run = options.for_seed(options.seed + static_cast<uint64_t>(i));
    run.add(options.transformer());
    run.add({"pooling=" + kind.key});
    const TrainedModel trained = run_training(run, folder, kind.key + ", run " + std::to_string(i + 1), progress);
    kind.accuracy.values.push_back(trained.metric("accuracy"));
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

Report run_pooling(const ImageTrainingRuns& options, const ProgressCallback& progress) {
  std::vector<PoolingKind> kinds{{"cls", "class token"}, {"gap", "mean"}, {"map", "attention"}, {"flatten", "all tokens"}};
  Report report;
  for (PoolingKind& kind : kinds) train_pooling(kind, options, report, progress);

  report.statement =
      "The class token, the mean and all tokens cost nearly the same; attention pooling costs one more layer. A linear layer on all tokens "
      "learns fastest, since it can weight every position separately; the mean, which cannot distinguish positions, learns slowest; class "
      "token and attention are in between.";
  Table heads{.title = "The four heads",
              .columns = {"head", "parameters", "multiply-adds", "test accuracy, 95 % CI", "last training loss"}};
  Table apart{.title = "Differences of accuracy per run", .columns = {"more", "than", "by, 95 % CI"}};
  BarSet bars{.name = "test accuracy"};
  std::vector<std::string> groups;
  std::vector<Series> curves;
  for (const PoolingKind& kind : kinds) {
    const Interval accuracy = kind.accuracy.interval();
    heads.rows.push_back(
        {kind.name, static_cast<double>(kind.parameters), static_cast<double>(kind.work), interval_text(accuracy), kind.losses.back()});
    groups.push_back(kind.name);
    bars.values.push_back(accuracy.mean), bars.low.push_back(accuracy.low), bars.high.push_back(accuracy.high);
    curves.push_back(
        {kind.name, steps(1, static_cast<double>(kind.losses.size()), static_cast<int>(kind.losses.size())), kind.losses, Mark::both});
  }
  const auto compare = [&](size_t more, size_t less) {
    const Interval by = difference(kinds[more].accuracy, kinds[less].accuracy);
    apart.rows.push_back({kinds[more].name, kinds[less].name, interval_text(by)});
    return by;
  };
  const Interval over_mean = compare(3, 1), over_token = compare(3, 0), over_attention = compare(3, 2);
  compare(0, 1), compare(2, 1), compare(2, 0);
  report.measured.push_back(at_least("flatten minus gap: accuracy, lower bound", 0, over_mean.low));
  report.measured.push_back(at_least("flatten minus cls: accuracy, lower bound", 0, over_token.low));
  report.measured.push_back(at_least("flatten minus map: accuracy, lower bound", 0, over_attention.low));
  report.tables = {std::move(heads), std::move(apart)};
  report.figures.push_back(figure("Test accuracy", "Mean over runs with its 95 % confidence interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {bars}}}));
  report.figures.push_back(
      figure("Training loss", "Mean over runs.", Plot{.body = Lines{.across = {"epoch"}, .up = {"loss"}, .series = curves}}));
  return report;
}

}  // namespace

Experiment pooling_heads() {
  return {
      .number = "L28",
      .name = "pooling-heads",
      .topic = Topic::learning,
      .title = "Four ways to pool tokens",
      .claim = "With the same encoder, images and steps, a head with separate weights for every token learns most from few images.",
      .formula = R"(\text{CLS: } W y_0, \quad \text{GAP: } W \frac{1}{N} \sum_n y_n, \quad \text{MAP: } W \, \mathrm{attend}(u, Y), \quad )"
                 R"(\text{flatten: } \sum_n W_n y_n)",
      .setup =
          "Small vision transformers that differ only in their pooling are trained from scratch on the same images with several seeds. "
          "Parameters and multiply-adds are counted, and test accuracies are compared by 95 % confidence intervals of the mean difference.",
      .prepare = prepared(declare_pooling, run_pooling)};
}

}  // namespace heed::lab
