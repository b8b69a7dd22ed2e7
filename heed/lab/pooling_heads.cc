// L28: from tokens to one vector in four ways (CLS, GAP, MAP, flatten), learned with the same encoder, pictures and steps.
#include "heed/lab/experiments.h"
#include "heed/lab/learn.h"
#include "heed/models/config.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

void declare_pooling(Settings& settings, PictureLessons& options, Size size) {
  if (size == Size::full) options.pictures = 6000, options.epochs = 10, options.seeds = 6;
  options.declare(settings);
}

struct PoolingSizes {
  int64_t N, D, F, K, layers, classes;  // patches, width, the wide part, numbers of a patch

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

  // Weights and biases of a patch layer, positions, layers with two norms each, a last norm and the head.
  int64_t parameters(const std::string& pooling) const {
    const int64_t first = pooling == "cls", wide = D * F + F + F * D + D, attention = 4 * (D * D + D);
    const int64_t own = first * D + (pooling == "map" ? D + attention + 2 * D + wide : 0);
    return D * (K + 1) + (N + first) * D + layers * (attention + wide + 4 * D) + 2 * D + own + head_inputs(pooling) * classes + classes;
  }
  int64_t multiply_adds(const std::string& pooling) const {  // of one picture
    const int64_t T = N + (pooling == "cls"), layer = T * (4 * D * D + 2 * D * F) + 2 * T * T * D;
    const int64_t query = 2 * N * D * D + 2 * D * D + 2 * N * D + 2 * D * F;  // one learned query over N tokens, and what follows
    return N * D * K + layers * layer + (pooling == "map" ? query : 0) + head_inputs(pooling) * classes;
  }
  int64_t head_inputs(const std::string& pooling) const { return pooling == "flatten" ? N * D : D; }
};

struct PoolingKind {
  std::string word, name;
  Trials right = {};
  std::vector<double> losses = {};  // of training, mean over seeds
  int64_t parameters = 0, work = 0;
};

void learn_pooling(PoolingKind& kind, const PictureLessons& options, Report& report, const Say& say) {
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.seeds; ++i) {
    Lesson lesson = options.lesson(options.seed + static_cast<uint64_t>(i));
    lesson.add(options.transformer());
    lesson.add({"pooling=" + kind.word});
    const Learned learned = learn(lesson, folder, kind.word + ", run " + std::to_string(i + 1), say);
    kind.right.values.push_back(learned.figure("accuracy"));
    kind.losses.resize(learned.losses.size());
    for (size_t e = 0; e < learned.losses.size(); ++e) kind.losses[e] += learned.losses[e] / static_cast<double>(options.seeds);
    if (i > 0) continue;
    const PoolingSizes sizes(*learned.model);
    kind.parameters = learned.model->params().count(), kind.work = work_of_picture(*learned.model);
    const auto add = [&](const char* what, int64_t predicted, int64_t measured) {
      report.measured.push_back(equal_to(kind.word + ": " + what, static_cast<double>(predicted), static_cast<double>(measured)));
    };
    add("parameters", sizes.parameters(kind.word), kind.parameters);
    add("multiply-adds of a picture", sizes.multiply_adds(kind.word), kind.work);
    report.measured.push_back(equal_to(kind.word + ": steps", static_cast<double>(options.epochs * ((options.pictures + 63) / 64)),
                                       static_cast<double>(learned.steps)));
  }
}

Report run_pooling(const PictureLessons& options, const Say& say) {
  std::vector<PoolingKind> kinds{{"cls", "class token"}, {"gap", "mean"}, {"map", "attention"}, {"flatten", "all tokens"}};
  Report report;
  for (PoolingKind& kind : kinds) learn_pooling(kind, options, report, say);

  report.statement =
      "The class token, the mean and all tokens cost nearly the same; attention pooling is a layer more. A linear layer on all tokens "
      "learns fastest, since it may weigh every place for itself; the mean, which cannot tell places apart, learns slowest, and class "
      "token and "
      "attention lie between.";
  Table heads{.title = "The four heads",
              .columns = {"head", "parameters", "multiply-adds", "test accuracy, 95 % of the mean", "last training loss"}};
  Table apart{.title = "Differences of accuracy, run by run", .columns = {"more", "than", "by, 95 % of the mean"}};
  BarSet bars{.name = "test accuracy"};
  std::vector<std::string> groups;
  std::vector<Series> curves;
  for (const PoolingKind& kind : kinds) {
    const Interval right = kind.right.interval();
    heads.rows.push_back(
        {kind.name, static_cast<double>(kind.parameters), static_cast<double>(kind.work), interval_text(right), kind.losses.back()});
    groups.push_back(kind.name);
    bars.values.push_back(right.mean), bars.low.push_back(right.low), bars.high.push_back(right.high);
    curves.push_back(
        {kind.name, steps(1, static_cast<double>(kind.losses.size()), static_cast<int>(kind.losses.size())), kind.losses, Mark::both});
  }
  const auto compare = [&](size_t more, size_t less) {
    const Interval by = differences(kinds[more].right, kinds[less].right).interval();
    apart.rows.push_back({kinds[more].name, kinds[less].name, interval_text(by)});
    return by;
  };
  const Interval over_mean = compare(3, 1), over_token = compare(3, 0), over_attention = compare(3, 2);
  compare(0, 1), compare(2, 1), compare(2, 0);
  report.measured.push_back(at_least("flatten less gap: accuracy, lower end", 0, over_mean.low));
  report.measured.push_back(at_least("flatten less cls: accuracy, lower end", 0, over_token.low));
  report.measured.push_back(at_least("flatten less map: accuracy, lower end", 0, over_attention.low));
  report.tables = {std::move(heads), std::move(apart)};
  report.figures.push_back(figure("Test accuracy", "Mean over runs with its 95 % interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {bars}}}));
  report.figures.push_back(figure("How they learn", "Training loss, mean over runs.",
                                  Plot{.body = Lines{.across = {"epoch"}, .up = {"loss"}, .series = curves}}));
  return report;
}

}  // namespace

Experiment pooling_heads() {
  return {
      .number = "L28",
      .name = "pooling-heads",
      .topic = Topic::learning,
      .title = "Four ways from tokens to an answer",
      .claim =
          "With the same encoder, pictures and steps, a head that reads every token by weights of its own learns most from few pictures.",
      .formula = R"(\text{CLS: } W y_0, \quad \text{GAP: } W \frac{1}{N} \sum_n y_n, \quad \text{MAP: } W \, \mathrm{attend}(u, Y), \quad )"
                 R"(\text{flatten: } \sum_n W_n y_n)",
      .prepare = prepared(declare_pooling, run_pooling)};
}

}  // namespace heed::lab
