// L17: cheaper attention for vision transformers: predicted savings, measured savings, and accuracy.
#include <algorithm>

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
  double exponent = 0, time_exponent = 0;  // in tokens; they differ where the kernel computes pairs and masks them
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
      // Skips rows of the grid, but computes columns and masks them: pairs grow as N, time as N times the side of the grid.
      {"square windows",
       {"pattern=grid_window:" + std::to_string(reach)},
       [=](const VisionSizes& z, int64_t) { return pairs(near_pairs(z.side, reach) * near_pairs(z.side, reach), z); },
       [=](const Tensor& q, const Tensor& k, const Tensor& v, int64_t side) {
         return attention(q, k, v, {.terms = {GridWindow{.rows = reach, .columns = reach, .width = side}}});
       },
       1,
       1.5},
      {"shifted chunks",
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
    method.right.add(trained);
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
  std::vector<std::vector<double>> seconds(methods.size()), works(methods.size());
  std::vector<double> tokens;
  const NoGrad no_grad;
  Rng rng(options.runs.seed);
  for (const int64_t eighths : {2, 3, 4, 6, 8}) {
    const int64_t side = options.side * eighths / 16 * 2;  // even
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
          seen("shifted chunks", {Chunks{.size = options.chunk, .shift = options.chunk / 2}}), seen("dilated", {Dilated{2}})}});
  }
  return film;
}

// The statement and the verdict. A method keeps the accuracy if it is above the middle between every token alone and all pairs.
void judge_cheaper(Report& report, const std::vector<CheaperMethod>& methods, const CheaperMethod& all, const CheaperMethod& alone) {
  const Interval gain = difference(all.right, alone.right);
  Trials middle;
  for (size_t i = 0; i < all.right.values.size(); ++i) middle.values.push_back((all.right.values[i] + alone.right.values[i]) / 2);
  std::vector<std::string> cheaper, no_cheaper, keep, lose, open;
  double kept = 0, lost = 0;  // of those that are cheaper
  for (const CheaperMethod& method : methods) {
    if (&method == &all || &method == &alone) continue;
    const double share = method.work / all.work;
    const Interval above = difference(method.right, middle);
    (share <= 0.95 ? cheaper : no_cheaper).push_back(method.name + " (" + number_text(share) + ")");
    (above.low > 0 ? keep : above.high < 0 ? lose : open).push_back(method.name);
    kept += share <= 0.95 && above.low > 0, lost += share <= 0.95 && above.high < 0;
  }
  const auto part = [](const char* what, const std::vector<std::string>& names) {
    return names.empty() ? "" : what + (": " + listed(names)) + ". ";
  };
  report.statement = "Counted multiply-adds equal the formulas, and the cost of attention alone grows with the tokens as predicted. " +
                     part("Cheaper by 5 % or more, as a share of the whole model", cheaper) +
                     part("Within 5 % of all pairs at this size", no_cheaper) + "Attention adds " + points_text(gain) +
                     " to the accuracy of a model in which every token is alone. " + part("More than half of that is kept by", keep) +
                     part("Less than half by", lose) + part("Not decided for", open);
  report.statement.pop_back();
  if (gain.low <= 0 || kept + lost == 0)
    report.undecided = report.statement + (gain.low <= 0 ? " Attention has not helped yet" : " The runs are too few or too short") +
                       ", so what a cheaper form loses cannot be told; train for more epochs.";
  else
    report.measured.push_back(at_least("cheaper by 5 % or more: methods that keep more than half of what attention adds", 1, kept));
  report.measured.push_back(at_least("methods that cut the model's cost by 5 % or more", 1, static_cast<double>(cheaper.size())));
}

Report run_cheaper(const CheaperOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.chunk % 2 == 0, "cheaper-vision: chunk=", options.chunk, ", expected an even number");
  std::vector<CheaperMethod> methods = cheaper_methods(options);
  Report report;
  Table times{.title = "Attention alone, at the largest grid",
              .columns = {"method", "savings in multiply-adds", "savings in time", "exponent of multiply-adds", "of time", "ms"}};
  const Lines lines = time_cheaper(methods, options, report, times);
  for (CheaperMethod& method : methods) train_cheaper(method, options, report, progress);
  const CheaperMethod &all = methods[0], &alone = methods[1];
  Table models{.title = "Whole models",
               .columns = {"method", "multiply-adds", "relative to all pairs", "test accuracy, 95 % CI", "minus all pairs",
                           "minus every token alone"}};
  BarSet bars{.name = "test accuracy"};
  std::vector<std::string> groups;
  for (const CheaperMethod& method : methods) {
    const Interval right = method.right.interval();
    models.rows.push_back({method.name, method.work, method.work / all.work, interval_text(right),
                           points_text(difference(method.right, all.right)), points_text(difference(method.right, alone.right))});
    groups.push_back(method.name);
    bars.values.push_back(right.mean), bars.low.push_back(right.low), bars.high.push_back(right.high);
  }
  judge_cheaper(report, methods, all, alone);
  report.tables = {std::move(models), std::move(times)};
  report.figures.push_back(figure("Time of attention", "4 heads of width 16. Square windows mask columns of whole rows, which takes time.",
                                  Plot{.body = lines}));
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
          "their formulas predict, and some of those that do keep most of what attention gains in accuracy.",
      .formula =
          R"(3 P^2 N D + L \left(12 N D^2 + 2 S D\right) + D C, \quad S = N^2 \text{ (all pairs)}, \; N^2 / r^2 \text{ (pooled keys)}, \; )"
          R"(N w \text{ (chunks)}, \; N D / H \text{ (channels)})",
      .setup =
          "Each method runs alone on growing grids, to measure how its time grows. Then small vision transformers that differ only in the "
          "method, one of them with every token alone, are trained with several seeds. Accuracies are compared by 95 % confidence "
          "intervals.",
      .budget = {"epochs"},
      .gpu = true,
      .timed = true,
      .prepare = prepared(declare_cheaper, run_cheaper)};
}

}  // namespace heed::lab
