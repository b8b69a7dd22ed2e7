// L11: multiply-adds of attention by formula, as counted by the ops, and as time; and the effect of more heads.
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

struct CostOptions {
  int64_t width = 128, keys = 96, values = 160;  // d, d_q, d_v
  int64_t least_tokens = 256, lengths = 4;
  int64_t most_heads = 16, head_tokens = 512;
  int64_t rounds = 7;
  uint64_t seed = 1;
};

void declare_cost(Settings& settings, CostOptions& options, Size size) {
  if (size == Size::full) options.lengths = 5, options.rounds = 15, options.most_heads = 32;
  settings.add("width", options.width, "d, of tokens; a multiple of most_heads", {.least = 1, .most = 4096});
  settings.add("keys", options.keys, "d_q, of queries and keys", {.least = 1, .most = 4096});
  settings.add("values", options.values, "d_v", {.least = 1, .most = 4096});
  settings.add("least_tokens", options.least_tokens, "the smallest n", {.least = 16, .most = 65536});
  settings.add("lengths", options.lengths, "number of lengths, each twice the previous one", {.least = 2, .most = 8});
  settings.add("most_heads", options.most_heads, "1, 2, 4 ... heads up to this", {.least = 1, .most = 256});
  settings.add("head_tokens", options.head_tokens, "n for the comparison of heads", {.least = 16, .most = 65536});
  settings.add("rounds", options.rounds, "timing rounds", {.least = 3, .most = 1000});
  settings.add("seed", options.seed, "of weights and tokens");
}

// A layer without its output projection, which is not in the formula.
struct CostedLayer {
  Params params;
  MultiHeadAttention layer;
  double parameters = 0;

  CostedLayer(uint64_t seed, int64_t width, int64_t heads, int64_t keys, int64_t values) : params(seed, {}, Weights::packed) {
    layer = make_multi_head(Scope(params, initializer::bert()),
                            {.width = width, .heads = heads, .head_width = keys / heads, .value_width = values / heads});
    for (const Parameter& parameter : params.all())
      if (!parameter.name.starts_with("output")) parameters += static_cast<double>(parameter.tensor.count());
  }
  double counted(const Tensor& x) const {
    const WorkCount count;
    layer.attend(layer.project(x));
    return static_cast<double>(count.multiply_adds());
  }
};

double projection_work(double n, double d, double keys, double values) { return n * d * (2 * keys + values); }
double pair_work(double n, double keys, double values) { return n * n * (keys + values); }

// Time against the number of tokens.
void add_cost_lengths(Report& report, const CostOptions& options) {
  const CostedLayer costed(options.seed, options.width, 1, options.keys, options.values);
  const auto d = static_cast<double>(options.width), keys = static_cast<double>(options.keys), values = static_cast<double>(options.values);
  Rng rng(options.seed);
  std::vector<double> tokens, projected, paired;
  std::vector<std::function<void()>> functions;
  for (int64_t i = 0; i < options.lengths; ++i) {
    const int64_t n = options.least_tokens << i;
    const Tensor x = random_normal({1, n, options.width}, 0, 1, rng, kCpu);
    tokens.push_back(static_cast<double>(n));
    projected.push_back(projection_work(tokens.back(), d, keys, values)), paired.push_back(pair_work(tokens.back(), keys, values));
    report.measured.push_back(equal_to("multiply-adds, n = " + std::to_string(n), projected.back() + paired.back(), costed.counted(x)));
    functions.emplace_back([&costed, x] { costed.layer.project(x); });
    functions.emplace_back([&costed, at = costed.layer.project(x)] { costed.layer.attend(at); });
  }
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  std::vector<double> project_ms, attend_ms;
  Table table{.title = "Predicted and measured", .columns = {"n", "n d (2 d_q + d_v)", "ms", "10⁹ / s", "n² (d_q + d_v)", "ms", "10⁹ / s"}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    project_ms.push_back(1e3 * seconds[2 * i]), attend_ms.push_back(1e3 * seconds[2 * i + 1]);
    table.rows.push_back({tokens[i], projected[i], project_ms[i], projected[i] / project_ms[i] / 1e6, paired[i], attend_ms[i],
                          paired[i] / attend_ms[i] / 1e6});
  }
  const Power project = fitted_power(tokens, project_ms), attend = fitted_power(tokens, attend_ms);
  report.measured.push_back(by_clock(equal_to("time of projections: exponent in n", 1, project.exponent, 0.2)));
  report.measured.push_back(by_clock(equal_to("time of scores and sums: exponent in n", 2, attend.exponent, 0.2)));
  report.tables.push_back(std::move(table));
  const auto fitted_times = [&](const Power& power) {
    std::vector<double> out;
    for (double n : tokens) out.push_back(power.at(n));
    return out;
  };
  report.figures.push_back(
      figure("Time against tokens",
             "Lines are fitted powers: n to the " + number_text(project.exponent) + " and to the " + number_text(attend.exponent) + ".",
             Plot{.body = Lines{.across = {"tokens n", true},
                                .up = {"milliseconds", true},
                                .series = {{"projections", tokens, project_ms, Mark::points},
                                           {"fit of projections", tokens, fitted_times(project), Mark::dashed},
                                           {"scores and sums", tokens, attend_ms, Mark::points},
                                           {"fit of scores and sums", tokens, fitted_times(attend), Mark::dashed}}}}));
}

// The same width in more heads.
void add_cost_heads(Report& report, const CostOptions& options) {
  const auto d = static_cast<double>(options.width), n = static_cast<double>(options.head_tokens);
  const double work = projection_work(n, d, d, d) + pair_work(n, d, d), parameters = 3 * (d * d + d);
  Rng rng(options.seed);
  const Tensor x = random_normal({1, options.head_tokens, options.width}, 0, 1, rng, kCpu);
  std::vector<std::unique_ptr<CostedLayer>> layers;
  std::vector<std::function<void()>> functions;
  Bars arithmetic{.up = {"million multiply-adds"}}, times{.up = {"milliseconds"}};
  BarSet counted{.name = "counted"}, formula{.name = "formula"};
  Table table{.title = "The same width in more heads",
              .columns = {"heads", "width of each", "multiply-adds", "parameters", "ms", "exponentials"}};
  for (int64_t heads = 1; heads <= options.most_heads; heads *= 2) {
    layers.push_back(std::make_unique<CostedLayer>(options.seed, options.width, heads, options.width, options.width));
    const CostedLayer& costed = *layers.back();
    const std::string name = std::to_string(heads) + (heads == 1 ? " head" : " heads");
    counted.values.push_back(costed.counted(x) / 1e6), formula.values.push_back(work / 1e6);
    report.measured.push_back(equal_to(name + ": multiply-adds", work, costed.counted(x)));
    report.measured.push_back(equal_to(name + ": parameters", parameters, costed.parameters));
    functions.emplace_back([&costed, x] { costed.layer.attend(costed.layer.project(x)); });
    arithmetic.groups.push_back(name), times.groups.push_back(name);
    table.rows.push_back({static_cast<double>(heads), d / static_cast<double>(heads), costed.counted(x), costed.parameters, 0.0,
                          n * n * static_cast<double>(heads)});
  }
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  BarSet measured{.name = "measured"};
  for (size_t i = 0; i < seconds.size(); ++i) measured.values.push_back(1e3 * seconds[i]), table.rows[i][4] = 1e3 * seconds[i];
  arithmetic.sets = {formula, counted}, times.sets = {measured};
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure(
      "The same width in more heads",
      "The multiply-adds stay the same. Heads can be computed in parallel, but each has its own softmax, so narrow heads take longer.",
      {Plot{"Multiply-adds", arithmetic}, Plot{"Time", times}}));
}

Report run_cost(const CostOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.width % options.most_heads == 0, "attention-cost: a width of ", options.width, " in ", options.most_heads,
                    " heads, expected a multiple");
  Report report;
  report.statement =
      "The ops count exactly what the formula predicts. Projections grow as n, scores and weighted sums as n². h heads of width d/h have "
      "the multiply-adds and the parameters of one head of width d; only the parallelism and the number of exponentials, h n², grow.";
  progress("lengths");
  add_cost_lengths(report, options);
  progress("heads");
  add_cost_heads(report, options);
  return report;
}

}  // namespace

Experiment attention_cost() {
  return {.number = "L11",
          .name = "attention-cost",
          .topic = Topic::cost,
          .title = "What attention costs, and what heads add to it",
          .claim =
              "Attention of n tokens of width d takes $n d (2 d_q + d_v) + n^2 (d_q + d_v)$ multiply-adds, and h heads of width $d/h$ take "
              "as many as one head of width d.",
          .formula = R"(n \, d \, (2 d_q + d_v) + n^2 (d_q + d_v), \quad h \cdot n^2 \frac{d_q + d_v}{h} = n^2 (d_q + d_v))",
          .setup =
              "Attention runs for sequence lengths that double and for a growing number of heads. The ops count their multiply-adds, and "
              "processor time is measured.",
          .prepare = prepared(declare_cost, run_cost)};
}

}  // namespace heed::lab
