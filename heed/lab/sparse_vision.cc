// L40: windows with global tokens, dilated and block-sparse attention at lengths where the cost is real, and what accuracy they keep.
#include <algorithm>
#include <cmath>

#include "heed/attention/attention.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/config.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct SparseOptions {
  ImageTrainingRuns runs = {.images = 800, .epochs = 5, .seeds = 3, .patch = 4};
  int64_t tokens = 4096, window = 64, globals = 16, step = 8, block = 64, rounds = 3;
};

void declare_sparse(Settings& settings, SparseOptions& options, Size size) {
  if (size == Size::full)  // 1,024 patches of one pixel
    options.runs.images = 4000, options.runs.epochs = 20, options.runs.seeds = 5, options.runs.patch = 1, options.tokens = 16384;
  options.runs.declare(settings);
  settings.add("tokens", options.tokens, "longest sequence that is counted and timed; a quarter and half of it, too",
               {.least = 64, .most = 65536});
  settings.add("window", options.window, "tokens seen on each side", {.least = 1, .most = 4096});
  settings.add("globals", options.globals, "tokens that see all and are seen by all", {.least = 0, .most = 1024});
  settings.add("step", options.step, "of dilated attention: every step-th key is seen", {.least = 2, .most = 64});
  settings.add("block", options.block, "side of the blocks of block-sparse attention", {.least = 8, .most = 512});
  settings.add("rounds", options.rounds, "of timing", {.least = 1, .most = 100});
}

constexpr int64_t kImageSide = 32;  // of the synthetic images

// Blocks on the diagonal and in the first block of columns. -> (1, N / size, N / size)
Tensor diagonal_blocks(int64_t N, int64_t size) {
  const int64_t blocks = (N + size - 1) / size;
  std::vector<uint8_t> kept;
  for (int64_t i = 0; i < blocks; ++i)
    for (int64_t j = 0; j < blocks; ++j) kept.push_back(i == j || j == 0);
  return cast(Tensor::from(kept, {1, blocks, blocks}, kCpu), DType::boolean);
}

struct SparseMethod {
  std::string name;
  std::function<std::vector<Term>(int64_t N)> terms;
  std::function<bool(int64_t i, int64_t j)> sees;  // the definition, pair by pair
  std::string pattern;                             // of the trained model; empty: all pairs
  std::vector<double> work = {}, seconds = {};     // by length
  Trials accuracy = {};
  int64_t patches = 0;  // of an image of the trained model
};

std::vector<SparseMethod> sparse_methods(const SparseOptions& options) {
  const int64_t w = options.window, g = options.globals, s = options.step, b = options.block;
  const int64_t row = std::max<int64_t>(1, kImageSide / options.runs.patch);  // patches in a row of a trained model's image
  const std::string near = std::to_string(row + 1);                           // up to the patches above and below, and their neighbours
  return {{"all pairs", [](int64_t) { return std::vector<Term>{}; }, [](int64_t, int64_t) { return true; }, ""},
          {"window and global tokens", [=](int64_t) { return std::vector<Term>{Window{.before = w, .after = w, .globals = g}}; },
           [=](int64_t i, int64_t j) { return i < g || j < g || std::abs(i - j) <= w; }, "window:" + near + ":" + near + ":1"},
          {"dilated", [=](int64_t) { return std::vector<Term>{Dilated{.step = s}}; },
           [=](int64_t i, int64_t j) { return (i - j) % s == 0; }, "dilated:2"},
          {"block-sparse", [=](int64_t N) { return std::vector<Term>{BlockSparse{.pattern = diagonal_blocks(N, b), .size = b}}; },
           [=](int64_t i, int64_t j) { return i / b == j / b || j / b == 0; }, "chunks:" + std::to_string(2 * row)}};
}

void measure_sparse(std::vector<SparseMethod>& methods, const std::vector<int64_t>& lengths, const SparseOptions& options, Report& report) {
  constexpr int64_t H = 1, D = 32;
  const NoGrad no_grad;
  Rng rng(options.runs.seed);
  for (const int64_t N : lengths) {
    const auto draw = [&] { return random_normal({1, H, N, D}, 0, 1, rng, kCpu); };
    const Tensor q = draw(), k = draw(), v = draw();
    std::vector<std::function<void()>> functions;
    for (SparseMethod& method : methods) {
      const AttentionOptions how{.terms = method.terms(N)};
      functions.emplace_back([q, k, v, how] { attention(q, k, v, how); });
      const WorkCount count;
      functions.back()();
      method.work.push_back(static_cast<double>(count.multiply_adds()));
      int64_t pairs = 0;
      for (int64_t i = 0; i < N; ++i)
        for (int64_t j = 0; j < N; ++j) pairs += method.sees(i, j);
      if (N == lengths.back())
        report.measured.push_back(equal_to(method.name + ", " + std::to_string(N) + " tokens: multiply-adds, 2 D for each visible pair",
                                           static_cast<double>(2 * D * pairs), method.work.back()));
    }
    const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
    for (size_t i = 0; i < methods.size(); ++i) methods[i].seconds.push_back(seconds[i]);
  }
}

void train_sparse(SparseMethod& method, const SparseOptions& options, const ProgressCallback& progress) {
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.runs.seeds; ++i) {
    TrainingRun run = options.runs.for_seed(options.runs.seed + static_cast<uint64_t>(i));
    run.add(options.runs.transformer());
    if (!method.pattern.empty()) run.add({"pattern=" + method.pattern});
    const TrainedModel trained = run_training(run, folder, method.name + ", run " + std::to_string(i + 1), progress);
    method.accuracy.add(trained);
    const Config config(trained.model->config(), "config.json");
    const std::array<int64_t, 2> image = config.sides("image_size", 32), patch = config.sides("patch_size", 4);
    method.patches = (image[0] / patch[0]) * (image[1] / patch[1]);
  }
}

Report run_sparse(const SparseOptions& options, const ProgressCallback& progress) {
  const std::vector<int64_t> lengths{options.tokens / 4, options.tokens / 2, options.tokens};
  std::vector<SparseMethod> methods = sparse_methods(options);
  Report report;
  measure_sparse(methods, lengths, options, report);
  for (SparseMethod& method : methods) train_sparse(method, options, progress);
  const SparseMethod& all = methods[0];
  Table costs{
      .title = "Attention of one head over " + std::to_string(options.tokens) + " tokens",
      .columns = {"method", "multiply-adds", "relative to all pairs", "time relative to all pairs", "exponent of multiply-adds", "ms"}};
  Table models{.title = "Trained vision transformers", .columns = {"method", "pattern", "test accuracy, 95 % CI", "minus all pairs"}};
  Lines lines{.across = {"tokens", true}, .up = {"milliseconds", true}};
  std::vector<double> tokens(lengths.begin(), lengths.end());
  std::string saved, accuracy;
  for (const SparseMethod& method : methods) {
    const double share = method.work.back() / all.work.back(), time = method.seconds.back() / all.seconds.back();
    costs.rows.push_back(
        {method.name, method.work.back(), share, time, fitted_power(tokens, method.work).exponent, 1e3 * method.seconds.back()});
    Series series{.name = method.name, .x = tokens, .mark = Mark::both};
    for (const double each : method.seconds) series.y.push_back(1e3 * each);
    lines.series.push_back(std::move(series));
    const Interval less = difference(method.accuracy, all.accuracy);
    models.rows.push_back(
        {method.name, method.pattern.empty() ? "none" : method.pattern, interval_text(method.accuracy.interval()), points_text(less)});
    if (&method == &all) continue;
    saved += (saved.empty() ? "" : ", ") + method.name + " " + number_text(share) + " of the multiply-adds and " + about_text(time) +
             " of the time";
    accuracy += (accuracy.empty() ? "" : "; ") + method.name + ", " + points_text(less);
  }
  report.statement = "At " + std::to_string(options.tokens) + " tokens, relative to all pairs: " + saved +
                     ". A pattern saves time where the kernel can skip whole blocks of keys; one that keeps one key in " +
                     std::to_string(options.step) + " leaves no block to skip. Accuracy of vision transformers trained on images of " +
                     std::to_string(all.patches) + " patches, minus that with all pairs: " + accuracy +
                     ". An interval that contains 0 shows no measurable difference.";
  report.measured.push_back(
      at_most("window and global tokens: multiply-adds relative to all pairs", 0.5, methods[1].work.back() / all.work.back()));
  report.measured.push_back(
      by_clock(at_most("window and global tokens: time relative to all pairs", 0.7, methods[1].seconds.back() / all.seconds.back())));
  report.measured.push_back(
      by_clock(at_most("block-sparse: time relative to all pairs", 0.7, methods[3].seconds.back() / all.seconds.back())));
  if (const Interval learned = all.accuracy.interval(); learned.low <= 0.15)
    report.undecided = "The costs are as predicted. What accuracy the patterns keep cannot be told: after " +
                       std::to_string(options.runs.epochs) + " epochs the model with all pairs has an accuracy of " +
                       interval_text(learned) + ", little above chance.";
  report.tables = {std::move(costs), std::move(models)};
  report.figures.push_back(figure("Time of attention", "One head of width 32, one thread.", Plot{.body = std::move(lines)}));
  return report;
}

}  // namespace

Experiment sparse_vision() {
  return {
      .number = "L40",
      .name = "sparse-vision",
      .topic = Topic::cost,
      .title = "Windows with global tokens, dilated and block-sparse attention",
      .claim =
          "Sparse patterns cut the multiply-adds of attention to those of the pairs they keep, and its time where whole blocks are "
          "skipped.",
      .formula =
          R"(2 D \, |\{(i, j) : i \text{ sees } j\}|, \quad \text{window } w \text{ and } g \text{ global tokens: about } 2 D N (2 w + 1 + 2 g))",
      .setup =
          "Each pattern is applied to sequences of growing length; its multiply-adds are counted and its processor time is measured. Then "
          "vision transformers with the same kinds of pattern are trained on the same images with several seeds, and compared with one "
          "that attends to all pairs.",
      .budget = {"epochs"},
      .gpu = true,
      .timed = true,
      .prepare = prepared(declare_sparse, run_sparse)};
}

}  // namespace heed::lab
