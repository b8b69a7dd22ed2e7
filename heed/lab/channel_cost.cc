// L15: multiply-adds and time of attention between patches, between channels, and between channels in groups.
#include <cmath>

#include "heed/attention/attention.h"
#include "heed/attention/channel_attention.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct ChannelCostOptions {
  int64_t side = 16, channels = 512, groups = 8, least_side = 8, sides = 5;
  int64_t rounds = 5;
  uint64_t seed = 1;
};

void declare_channel_cost(Settings& settings, ChannelCostOptions& options, Size size) {
  if (size == Size::full) options.sides = 6, options.rounds = 11;
  settings.add("side", options.side, "patches along a side of the image", {.least = 1, .most = 256});
  settings.add("channels", options.channels, "C, a multiple of groups", {.least = 1, .most = 8192});
  settings.add("groups", options.groups, "groups of channels: 1, 2, 4 ... up to this", {.least = 1, .most = 256});
  settings.add("least_side", options.least_side, "side of the smallest image that is timed", {.least = 2, .most = 128});
  settings.add("sides", options.sides, "number of images, each with twice the patches of the previous one", {.least = 2, .most = 8});
  settings.add("rounds", options.rounds, "timing rounds", {.least = 3, .most = 1000});
  settings.add("seed", options.seed, "of the patches");
}

double patch_work(double N, double C) { return 2 * N * N * C; }
double channel_work(double N, double C, double groups) { return 2 * N * C * C / groups; }

struct CostedPatches {
  Tensor q, k, v;  // (1, N, C)

  CostedPatches(int64_t N, int64_t C, Rng& rng)
      : q(random_normal({1, N, C}, 0, 1, rng, kCpu)),
        k(random_normal({1, N, C}, 0, 1, rng, kCpu)),
        v(random_normal({1, N, C}, 0, 1, rng, kCpu)) {}

  static Tensor grouped(const Tensor& x, int64_t groups) {  // (1, G, N, C / G)
    return transpose(reshape(x, {1, x.size(1), groups, x.size(2) / groups}), 1, 2);
  }
  Tensor between_patches(int64_t heads = 1) const { return attention(grouped(q, heads), grouped(k, heads), grouped(v, heads)); }
  Tensor between_channels(int64_t groups) const { return channel_attention(grouped(q, groups), grouped(k, groups), grouped(v, groups)); }
};

double counted_channel_work(const std::function<Tensor()>& attend) {
  const WorkCount count;
  attend();
  return static_cast<double>(count.multiply_adds());
}

// Counts and times at one size, by number of groups.
void add_channel_counts(Report& report, const ChannelCostOptions& options) {
  const int64_t N = options.side * options.side, C = options.channels;
  const auto n = static_cast<double>(N), c = static_cast<double>(C);
  Rng rng(options.seed);
  const CostedPatches x(N, C, rng);
  std::vector<std::function<void()>> functions{[&] { x.between_patches(); }};
  Bars bars{.up = {"million multiply-adds"}, .groups = {"patches"}};
  BarSet formula{.name = "formula", .values = {patch_work(n, c) / 1e6}}, counted{.name = "counted"};
  const double of_patches = counted_channel_work([&] { return x.between_patches(); });
  counted.values.push_back(of_patches / 1e6);
  report.measured.push_back(equal_to("between patches: 2 N² C", patch_work(n, c), of_patches));
  report.measured.push_back(equal_to("between patches, as many heads as groups", patch_work(n, c),
                                     counted_channel_work([&] { return x.between_patches(options.groups); })));
  Table table{.title = "Patches against channels", .columns = {"attention between", "map", "multiply-adds", "ms"}};
  table.rows.push_back({std::string("patches"), std::to_string(N) + " x " + std::to_string(N), patch_work(n, c), 0.0});
  for (int64_t groups = 1; groups <= options.groups; groups *= 2) {
    const auto g = static_cast<double>(groups);
    const std::string name = groups == 1 ? "channels" : "channels in " + std::to_string(groups) + " groups";
    const double work = counted_channel_work([&] { return x.between_channels(groups); });
    report.measured.push_back(equal_to("between " + name + (groups == 1 ? ": 2 N C²" : ": 2 N C² / G"), channel_work(n, c, g), work));
    bars.groups.push_back(groups == 1 ? "channels" : "G = " + std::to_string(groups));
    formula.values.push_back(channel_work(n, c, g) / 1e6), counted.values.push_back(work / 1e6);
    functions.emplace_back([&x, groups] { x.between_channels(groups); });
    const std::string map = std::to_string(C / groups) + " x " + std::to_string(C / groups);
    table.rows.push_back({name, groups == 1 ? map : std::to_string(groups) + " of " + map, work, 0.0});
  }
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  BarSet measured{.name = "measured"};
  for (size_t i = 0; i < seconds.size(); ++i) measured.values.push_back(1e3 * seconds[i]), table.rows[i][3] = 1e3 * seconds[i];
  Bars times{.up = {"milliseconds"}, .groups = bars.groups, .sets = {measured}};
  bars.sets = {formula, counted};
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure(
      "One image", std::to_string(options.side) + " x " + std::to_string(options.side) + " patches of " + std::to_string(C) + " channels.",
      {Plot{"Multiply-adds", bars}, Plot{"Time", times}}));
}

// Times by image size.
void add_channel_sides(Report& report, const ChannelCostOptions& options) {
  const int64_t C = options.channels;
  std::vector<CostedPatches> images;
  std::vector<double> tokens, patches, channels, grouped;
  std::vector<std::function<void()>> functions;
  Rng rng(options.seed);
  for (int64_t i = 0; i < options.sides; ++i) images.emplace_back(options.least_side * options.least_side << i, C, rng);
  for (const CostedPatches& x : images) {
    tokens.push_back(static_cast<double>(x.q.size(1)));
    functions.emplace_back([&x] { x.between_patches(); });
    functions.emplace_back([&x] { x.between_channels(1); });
    functions.emplace_back([&x, G = options.groups] { x.between_channels(G); });
  }
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  for (size_t i = 0; i < seconds.size(); i += 3)
    patches.push_back(1e3 * seconds[i]), channels.push_back(1e3 * seconds[i + 1]), grouped.push_back(1e3 * seconds[i + 2]);
  const Power of_patches = fitted_power(tokens, patches), of_channels = fitted_power(tokens, channels);
  report.measured.push_back(by_clock(equal_to("between patches: exponent of time in N", 2, of_patches.exponent, 0.3)));
  report.measured.push_back(by_clock(equal_to("between channels: exponent of time in N", 1, of_channels.exponent, 0.3)));
  if (const std::optional<double> meet = crossover(tokens, channels, patches))
    report.measured.push_back(by_clock(close_to("N at which both take the same time: C", static_cast<double>(C), *meet, 0.5)));
  report.figures.push_back(
      figure("As images grow",
             "Fitted: N to the " + number_text(of_patches.exponent) + " between patches, to the " + number_text(of_channels.exponent) +
                 " between channels. Both need the same multiply-adds at N = C.",
             Plot{.body = Lines{.across = {"patches N", true},
                                .up = {"milliseconds", true},
                                .series = {{"between patches", tokens, patches, Mark::both},
                                           {"between channels", tokens, channels, Mark::both},
                                           {"in " + std::to_string(options.groups) + " groups", tokens, grouped, Mark::both}}}}));
}

Report run_channel_cost(const ChannelCostOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.channels % options.groups == 0, "channel-cost: ", options.channels, " channels in ", options.groups,
                    " groups, expected a multiple");
  Report report;
  report.statement =
      "Attention between patches takes 2 N² C multiply-adds, between channels 2 N C²: with fewer patches than channels, as with 256 and "
      "512, patches are cheaper, by half. G groups divide the multiply-adds of channels by G; heads do not divide those of patches. The "
      "cost between channels is linear in the image size, between patches quadratic, and they are equal at N = C / G.";
  // The sizes of the claim, whatever the options are.
  Rng rng(options.seed);
  const CostedPatches claimed(16 * 16, 512, rng);
  report.measured = {
      close_to("16 x 16 patches of 512, between patches", 67.1e6, counted_channel_work([&] { return claimed.between_patches(); }), 1e-3),
      close_to("16 x 16 patches of 512, between channels", 134.2e6, counted_channel_work([&] { return claimed.between_channels(1); }),
               1e-3),
  };
  progress("counts");
  add_channel_counts(report, options);
  progress("growing images");
  add_channel_sides(report, options);
  return report;
}

}  // namespace

Experiment channel_cost() {
  return {.number = "L15",
          .name = "channel-cost",
          .topic = Topic::cost,
          .title = "Between patches or between channels",
          .claim =
              "On 16 x 16 patches of 512 channels, attention between patches takes 67.1 million multiply-adds and between channels 134.2 "
              "million, and G groups of channels divide the latter by G.",
          .formula = R"(2 N^2 C \quad \mathrm{against} \quad \frac{2 N C^2}{G})",
          .setup =
              "Attention between patches and between channels runs on the same random image, for several numbers of groups and for growing "
              "images. Multiply-adds are counted, and processor time is measured.",
          .prepare = prepared(declare_channel_cost, run_channel_cost)};
}

}  // namespace heed::lab
