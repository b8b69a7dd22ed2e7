// L17: cheaper attention for vision transformers: predicted savings, measured savings, and accuracy.
#include <algorithm>
#include <cmath>

#include "heed/attention/channel_attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/pooled_keys.h"
#include "heed/attention/probabilities.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/ops/ops.h"
#include "heed/train/settings_value.h"

namespace heed::lab {
namespace {

struct CheaperOptions {
  ImageTrainingRuns runs = {.images = 2000, .epochs = 5, .seeds = 3};
  int64_t reach = 1, chunk = 4, side = 64;
};

void declare_cheaper(Settings& settings, CheaperOptions& options, Size size) {
  if (size == Size::full)
    options.runs.images = 3000, options.runs.epochs = 8, options.runs.seeds = 4, options.runs.patch = 4, options.chunk = 8,
    options.side = 96;
  options.runs.declare(settings);
  settings.add("reach", options.reach, "of square windows: rows and columns on each side of the query", {.least = 1, .most = 8});
  settings.add("chunk", options.chunk, "tokens per chunk of the sequence, an even number", {.least = 2, .most = 64});
  settings.add("side", options.side, "side of the largest grid of tokens that is timed", {.least = 32, .most = 128});
}

struct VisionSizes {
  int64_t side, D, H, layers, patch, classes;  // tokens per row, width, heads, ...
  int64_t N() const { return side * side; }
};

// Pairs of positions along one side that are at most `reach` apart.
int64_t near_pairs(int64_t side, int64_t reach) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < side; ++i) pairs += std::min(side - 1, i + reach) - std::max<int64_t>(0, i - reach) + 1;
  return pairs;
}

struct CheaperMethod {
  std::string name;
  std::vector<std::string> settings;                                      // model settings
  std::function<int64_t(const VisionSizes& z, int64_t layer)> attention;  // multiply-adds of attention in one layer
  std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v, int64_t side)> run = {};
  double exponent = 0;       // of multiply-adds in tokens
  double time_exponent = 0;  // of time: differs where the kernel computes pairs and masks them
  Trials right = {};
  double work = 0;  // multiply-adds per image
};

std::vector<CheaperMethod> cheaper_methods(const CheaperOptions& options) {
  const int64_t reach = options.reach, chunk = options.chunk;
  const auto pairs = [](int64_t seen, const VisionSizes& z) { return 2 * seen * z.D; };
  return {
      {"all pairs",
       {},
       [=](const VisionSizes& z, int64_t) { return pairs(z.N() * z.N(), z); },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return attention(q, k, v); },
       2,
       2},
      {"every token alone", {"pattern=grid_window:0"}, [=](const VisionSizes& z, int64_t) { return pairs(z.N(), z); }},
      // Whole rows of the grid are skipped; columns outside the window are computed and masked. So the pairs that count grow as N, those
      // computed as N times the side of the grid.
      {"square windows",
       {"pattern=grid_window:" + std::to_string(reach)},
       [=](const VisionSizes& z, int64_t) { return pairs(near_pairs(z.side, reach) * near_pairs(z.side, reach), z); },
       [=](const Tensor& q, const Tensor& k, const Tensor& v, int64_t side) {
         return attention(q, k, v, {.terms = {GridWindow{.rows = reach, .columns = reach, .width = side}}});
       },
       1,
       1.5},
      {"chunks, shifted",
       {"pattern=chunks:" + std::to_string(chunk) + ":shifted"},
       [=](const VisionSizes& z, int64_t layer) {
         const int64_t N = z.N(), shift = layer % 2 == 1 ? chunk / 2 : 0;
         int64_t seen = 0;
         for (int64_t i = 0; i < N; ++i) {
           const int64_t begin = (i + shift) / chunk * chunk - shift;
           seen += std::min(N, begin + chunk) - std::max<int64_t>(0, begin);
         }
         return pairs(seen, z);
       },
       [=](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return attention(q, k, v, {.terms = {Chunks{.size = chunk}}}); },
       1,
       1},
      {"pooled keys",
       {"attention=pooled", "reduction=2"},
       [=](const VisionSizes& z, int64_t) { return pairs(z.N() * ((z.side + 1) / 2) * ((z.side + 1) / 2), z); },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t side) {
         return attention(q, pooled_keys(k, {side, side}, 2), pooled_keys(v, {side, side}, 2));
       },
       2,
       2},
      {"channels",
       {"attention=channel"},
       [](const VisionSizes& z, int64_t) { return 2 * z.N() * z.D * z.D / z.H; },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return channel_attention(q, k, v); },
       1,
       1},
      {"linear",
       {"attention=linear"},
       [](const VisionSizes& z, int64_t) { return 2 * z.N() * z.D * z.D / z.H + z.N() * z.D; },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return linear_attention(q, k, v); },
       1,
       1},
      {"larger patches",
       {"patch=" + std::to_string(2 * options.runs.patch)},
       [=](const VisionSizes& z, int64_t) { return pairs(z.N() * z.N(), z); }},
  };
}

// Patch embedding, layers and a head on the mean, for one image.
int64_t vision_multiply_adds(const CheaperMethod& method, const VisionSizes& z) {
  int64_t out = z.N() * z.D * 3 * z.patch * z.patch + z.D * z.classes;
  for (int64_t layer = 0; layer < z.layers; ++layer) out += z.N() * 12 * z.D * z.D + method.attention(z, layer);
  return out;
}

void train_cheaper(CheaperMethod& method, const CheaperOptions& options, Report& report, const ProgressCallback& progress) {
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.runs.seeds; ++i) {
    TrainingRun run = options.runs.for_seed(options.runs.seed + static_cast<uint64_t>(i));
    run.add(options.runs.transformer());
    run.add({"pooling=gap"});
    run.add(method.settings);
    const TrainedModel trained = run_training(run, folder, method.name + ", run " + std::to_string(i + 1), progress);
    method.right.values.push_back(trained.metric("accuracy"));
    if (i > 0) continue;
    const Json& config = trained.model->config();
    const auto size = [&](const char* key) { return config.at(key).get<int64_t>(); };
    const VisionSizes z{size("image_size") / size("patch_size"),
                        size("hidden_size"),
                        size("num_attention_heads"),
                        size("num_hidden_layers"),
                        size("patch_size"),
                        std::ssize(config.at("id2label"))};
    method.work = static_cast<double>(work_of_image(*trained.model));
    report.measured.push_back(
        equal_to(method.name + ": multiply-adds per image", static_cast<double>(vision_multiply_adds(method, z)), method.work));
  }
}

// Times of attention over growing grids.
Lines time_cheaper(std::vector<CheaperMethod>& methods, const CheaperOptions& options, Report& report, Table& table) {
  const int64_t H = 4, D = 16;
  std::vector<int64_t> sides{options.side / 4, options.side * 3 / 8, options.side / 2, options.side * 3 / 4, options.side};
  std::vector<std::vector<double>> seconds(methods.size()), works(methods.size());
  std::vector<double> tokens;
  const NoGrad no_grad;
  Rng rng(options.runs.seed);
  for (int64_t side : sides) {
    side -= side % 2;
    tokens.push_back(static_cast<double>(side * side));
    const auto draw = [&] { return random_normal({1, H, side * side, D}, 0, 1, rng, kCpu); };
    const Tensor q = draw(), k = draw(), v = draw();
    std::vector<std::function<void()>> functions;
    std::vector<size_t> method_of;
    for (size_t i = 0; i < methods.size(); ++i) {
      if (!methods[i].run) continue;
      functions.emplace_back([&method = methods[i], q, k, v, side] { method.run(q, k, v, side); });
      method_of.push_back(i);
      const WorkCount count;
      methods[i].run(q, k, v, side);
      works[i].push_back(static_cast<double>(count.multiply_adds()));
    }
    const std::vector<double> found = processor_seconds(functions, 5);
    for (size_t i = 0; i < found.size(); ++i) seconds[method_of[i]].push_back(found[i]);
  }
  Lines lines{.across = {"tokens", true}, .up = {"milliseconds", true}};
  for (size_t i = 0; i < methods.size(); ++i) {
    if (!methods[i].run) continue;
    // Small grids are dominated by call overhead: fit the largest three.
    const Power power = fitted_power(std::span(tokens).last(3), std::span(seconds[i]).last(3));
    const double work_exponent = fitted_power(std::span(tokens).last(3), std::span(works[i]).last(3)).exponent;
    report.measured.push_back(
        equal_to(methods[i].name + ": exponent of multiply-adds in tokens", methods[i].exponent, work_exponent, 0.05));
    report.measured.push_back(
        by_clock(equal_to(methods[i].name + ": exponent of time in tokens", methods[i].time_exponent, power.exponent, 0.35)));
    table.rows.push_back({methods[i].name, works[0].back() / works[i].back(), seconds[0].back() / seconds[i].back(), work_exponent,
                          power.exponent, 1e3 * seconds[i].back()});
    Series series{.name = methods[i].name, .x = tokens, .mark = Mark::both};
    for (const double each : seconds[i]) series.y.push_back(1e3 * each);
    lines.series.push_back(std::move(series));
  }
  return lines;
}

// Which keys each pattern allows: attention maps with all scores zero.
Figure visible_keys(const CheaperOptions& options) {
  const int64_t side = 8, N = side * side;
  const Tensor none = Tensor::zeros({1, 1, N, 1}, kCpu);
  Figure film{
      .title = "Which keys a query sees", .caption = "On 8 x 8 patches; every second layer shifts the chunks.", .parameter = "query"};
  for (int64_t stop = 0; stop < side; ++stop) {
    const int64_t query = stop * side + stop;
    const auto seen = [&](const char* name, std::vector<Term> terms) {
      HeatMap map =
          heat_map(reshape(attention_probabilities(none, none, {.beta = 0.0f, .terms = std::move(terms)}, {}, {query}), {side, side}));
      for (double& value : map.values) value = value > 0 ? 1 : 0;
      map.values[static_cast<size_t>(query)] = 1.5;
      map.least = 0, map.most = 1.5;
      return Plot{name, std::move(map)};
    };
    film.frames.push_back(
        {"(" + std::to_string(stop) + ", " + std::to_string(stop) + ")",
         {seen("square windows", {GridWindow{options.reach, options.reach, side}}), seen("chunks", {Chunks{.size = options.chunk}}),
          seen("chunks, shifted", {Chunks{.size = options.chunk, .shift = options.chunk / 2}}), seen("dilated", {Dilated{2}})}});
  }
  return film;
}

// The statement and the verdict, from work and accuracy of the trained models.
void judge_cheaper(Report& report, const std::vector<CheaperMethod>& methods, const CheaperMethod& all, const CheaperMethod& alone,
                   const CheaperOptions& options) {
  std::vector<std::string> cheaper, no_cheaper, keeps, loses;
  for (const CheaperMethod& method : methods) {
    if (&method == &all || &method == &alone) continue;
    const double share = method.work / all.work;
    (share <= 0.95 ? cheaper : no_cheaper).push_back(method.name + " (" + number_text(share) + ")");
    const Interval less = difference(method.right, all.right);
    if (share <= 0.95) (less.high < 0 ? loses : keeps).push_back(method.name);
  }
  report.statement =
      "Counted multiply-adds equal the formulas, and attention alone grows with the tokens as predicted. Of the whole model ";
  report.statement += cheaper.empty() ? "none cuts the cost at this size" : "these cut the cost, to the given share: " + listed(cheaper);
  report.statement += no_cheaper.empty() ? ". " : ". These do not at this size: " + listed(no_cheaper) + ". ";
  if (!keeps.empty()) report.statement += "Not measurably less accurate than all pairs: " + listed(keeps) + ". ";
  if (!loses.empty()) report.statement += "Less accurate: " + listed(loses) + ".";
  const Interval gain = difference(all.right, alone.right);
  if (gain.low <= 0)
    report.undecided = "After " + std::to_string(options.runs.epochs) + " epochs of " + std::to_string(options.runs.images) +
                       " images attention has not helped yet: all pairs minus every token alone is " + interval_text(gain) +
                       " in accuracy. What a cheaper form loses cannot be told; train for more epochs.";
  else
    report.measured.push_back(at_least("all pairs minus every token alone: accuracy, lower bound", 0, gain.low));
  report.measured.push_back(at_least("methods that cut the model's cost by 5 % or more", 1, static_cast<double>(cheaper.size())));
  if (gain.low > 0) report.measured.push_back(at_least("of these, not measurably less accurate", 1, static_cast<double>(keeps.size())));
}

Report run_cheaper(const CheaperOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.chunk % 2 == 0, "cheaper-vision: chunk=", options.chunk, ", expected an even number");
  std::vector<CheaperMethod> methods = cheaper_methods(options);
  Report report;
  Table times{.title = "Attention alone, at the largest grid",
              .columns = {"method", "savings in multiply-adds", "savings in time", "exponent of multiply-adds", "of time", "ms"}};
  const Lines lines = time_cheaper(methods, options, report, times);
  for (CheaperMethod& method : methods) train_cheaper(method, options, report, progress);

  const auto named = [&](const std::string& name) -> const CheaperMethod& {
    return *std::find_if(methods.begin(), methods.end(), [&](const CheaperMethod& method) { return method.name == name; });
  };
  const CheaperMethod &all = named("all pairs"), &alone = named("every token alone");
  Table models{.title = "Whole models",
               .columns = {"method", "multiply-adds", "relative to all pairs", "test accuracy, 95 % CI", "minus all pairs",
                           "minus every token alone"}};
  BarSet bars{.name = "test accuracy"};
  std::vector<std::string> groups;
  for (const CheaperMethod& method : methods) {
    const Interval right = method.right.interval();
    models.rows.push_back({method.name, method.work, method.work / all.work, interval_text(right),
                           interval_text(difference(method.right, all.right)), interval_text(difference(method.right, alone.right))});
    groups.push_back(method.name);
    bars.values.push_back(right.mean), bars.low.push_back(right.low), bars.high.push_back(right.high);
  }
  judge_cheaper(report, methods, all, alone, options);
  report.tables = {std::move(models), std::move(times)};
  report.figures.push_back(figure("Time of attention", "4 heads of width 16. The slopes are the exponents.", Plot{.body = lines}));
  report.figures.push_back(figure("Accuracy", "Mean over runs with its 95 % confidence interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {bars}}}));
  report.figures.push_back(visible_keys(options));
  return report;
}

}  // namespace

Experiment cheaper_vision() {
  return {
      .number = "L17",
      .name = "cheaper-vision",
      .topic = Topic::cost,
      .title = "Cheaper vision transformers",
      .claim =
          "Windows, chunks, pooled keys, channel attention, linear attention and larger patches cut the cost of a vision transformer as "
          "their formulas predict, and some of them keep its accuracy.",
      .formula =
          R"(3 P^2 N D + L \left(12 N D^2 + 2 S D\right) + D C, \quad S = N^2 \text{ (all pairs)}, \; N^2 / r^2 \text{ (pooled keys)}, \; )"
          R"(N w \text{ (chunks)}, \; N D / H \text{ (channels)})",
      .setup =
          "Each method runs alone on growing grids, to measure how its time grows. Then small vision transformers that differ only in the "
          "method are trained from scratch with several seeds, and their test accuracies are compared by 95 % confidence intervals of the "
          "mean difference.",
      .prepare = prepared(declare_cheaper, run_cheaper)};
}

}  // namespace heed::lab
