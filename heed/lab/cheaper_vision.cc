// L17: ways to cut a vision transformer's cost: what they should save, what they do save, and what accuracy they keep.
#include <algorithm>
#include <cmath>

#include "heed/attention/channel_attention.h"
#include "heed/attention/kernel_attention.h"
#include "heed/attention/pooled_keys.h"
#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/learn.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct CheaperOptions {
  PictureLessons lessons = {.pictures = 2000, .epochs = 5, .seeds = 3};
  int64_t reach = 1, chunk = 4, side = 64;
};

void declare_cheaper(Settings& settings, CheaperOptions& options, Size size) {
  if (size == Size::full)
    options.lessons.pictures = 3000, options.lessons.epochs = 8, options.lessons.seeds = 4, options.lessons.patch = 4, options.chunk = 8,
    options.side = 96;
  options.lessons.declare(settings);
  settings.add("reach", options.reach, "of square windows: so many rows and columns to all sides", {.least = 1, .most = 8});
  settings.add("chunk", options.chunk, "tokens that see each other where the sequence is cut into chunks, even", {.least = 2, .most = 64});
  settings.add("side", options.side, "of the largest grid of tokens that times are taken of", {.least = 32, .most = 128});
}

struct VisionSizes {
  int64_t side, D, H, layers, patch, classes;  // tokens of a row, width, heads, ...
  int64_t N() const { return side * side; }
};

// Pairs of places along one side that are at most `reach` apart.
int64_t near_pairs(int64_t side, int64_t reach) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < side; ++i) pairs += std::min(side - 1, i + reach) - std::max<int64_t>(0, i - reach) + 1;
  return pairs;
}

struct CheaperWay {
  std::string name;
  std::vector<std::string> words;                                         // settings of the model
  std::function<int64_t(const VisionSizes& z, int64_t layer)> attention;  // multiply-adds of one layer's
  std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v, int64_t side)> run = {};
  double exponent = 0;  // of the time in tokens
  Trials right = {};
  double work = 0;  // multiply-adds of a picture
};

std::vector<CheaperWay> cheaper_ways(const CheaperOptions& options) {
  const int64_t reach = options.reach, chunk = options.chunk;
  const auto pairs = [](int64_t seen, const VisionSizes& z) { return 2 * seen * z.D; };
  return {
      {"all pairs",
       {},
       [=](const VisionSizes& z, int64_t) { return pairs(z.N() * z.N(), z); },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return attention(q, k, v); },
       2},
      {"every token alone", {"pattern=grid_window:0"}, [=](const VisionSizes& z, int64_t) { return pairs(z.N(), z); }},
      // Whole rows of the grid are skipped; the columns between are computed and hidden: the time has another exponent than the pairs.
      {"square windows",
       {"pattern=grid_window:" + std::to_string(reach)},
       [=](const VisionSizes& z, int64_t) { return pairs(near_pairs(z.side, reach) * near_pairs(z.side, reach), z); },
       [=](const Tensor& q, const Tensor& k, const Tensor& v, int64_t side) {
         return attention(q, k, v, {.terms = {GridWindow{.rows = reach, .columns = reach, .width = side}}});
       },
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
       1},
      {"pooled keys",
       {"attention=pooled", "reduction=2"},
       [=](const VisionSizes& z, int64_t) { return pairs(z.N() * ((z.side + 1) / 2) * ((z.side + 1) / 2), z); },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t side) {
         return attention(q, pooled_keys(k, {side, side}, 2), pooled_keys(v, {side, side}, 2));
       },
       2},
      {"channels",
       {"attention=channel"},
       [](const VisionSizes& z, int64_t) { return 2 * z.N() * z.D * z.D / z.H; },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return channel_attention(q, k, v); },
       1},
      {"kernel",
       {"attention=kernel"},
       [](const VisionSizes& z, int64_t) { return 2 * z.N() * z.D * z.D / z.H + z.N() * z.D; },
       [](const Tensor& q, const Tensor& k, const Tensor& v, int64_t) { return kernel_attention(q, k, v); },
       1},
      {"larger patches",
       {"patch=" + std::to_string(2 * options.lessons.patch)},
       [=](const VisionSizes& z, int64_t) { return pairs(z.N() * z.N(), z); }},
  };
}

// Patches, layers and a head on the mean, of one picture.
int64_t vision_multiply_adds(const CheaperWay& way, const VisionSizes& z) {
  int64_t out = z.N() * z.D * 3 * z.patch * z.patch + z.D * z.classes;
  for (int64_t layer = 0; layer < z.layers; ++layer) out += z.N() * 12 * z.D * z.D + way.attention(z, layer);
  return out;
}

void learn_cheaper(CheaperWay& way, const CheaperOptions& options, Report& report, const Say& say) {
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.lessons.seeds; ++i) {
    Lesson lesson = options.lessons.lesson(options.lessons.seed + static_cast<uint64_t>(i));
    lesson.add(options.lessons.transformer());
    lesson.add({"pooling=gap"});
    lesson.add(way.words);
    const Learned learned = learn(lesson, folder, way.name + ", run " + std::to_string(i + 1), say);
    way.right.values.push_back(learned.figure("accuracy"));
    if (i > 0) continue;
    const Json& config = learned.model->config();
    const auto size = [&](const char* key) { return config.at(key).get<int64_t>(); };
    const VisionSizes z{size("image_size") / size("patch_size"),
                        size("hidden_size"),
                        size("num_attention_heads"),
                        size("num_hidden_layers"),
                        size("patch_size"),
                        std::ssize(config.at("id2label"))};
    way.work = static_cast<double>(work_of_picture(*learned.model));
    report.measured.push_back(
        equal_to(way.name + ": multiply-adds of a picture", static_cast<double>(vision_multiply_adds(way, z)), way.work));
  }
}

// Times of one attention over growing grids.
Lines time_cheaper(std::vector<CheaperWay>& ways, const CheaperOptions& options, Report& report, Table& table) {
  const int64_t H = 4, D = 16;
  std::vector<int64_t> sides{options.side / 4, options.side * 3 / 8, options.side / 2, options.side * 3 / 4, options.side};
  std::vector<std::vector<double>> seconds(ways.size());
  std::vector<double> tokens;
  const NoGrad quiet;
  Rng rng(options.lessons.seed);
  for (int64_t side : sides) {
    side -= side % 2;
    tokens.push_back(static_cast<double>(side * side));
    const auto draw = [&] { return random_normal({1, H, side * side, D}, 0, 1, rng); };
    const Tensor q = draw(), k = draw(), v = draw();
    std::vector<std::function<void()>> works;
    std::vector<size_t> whose;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (!ways[i].run) continue;
      works.emplace_back([&way = ways[i], q, k, v, side] { way.run(q, k, v, side); });
      whose.push_back(i);
    }
    const std::vector<double> found = processor_seconds(works, 5);
    for (size_t i = 0; i < found.size(); ++i) seconds[whose[i]].push_back(found[i]);
  }
  Lines lines{.across = {"tokens", true}, .up = {"milliseconds", true}};
  for (size_t i = 0; i < ways.size(); ++i) {
    if (!ways[i].run) continue;
    // Small ones take the time of beginning: the exponent is that of the larger three.
    const Power power = fitted_power(std::span(tokens).last(3), std::span(seconds[i]).last(3));
    report.measured.push_back(equal_to(ways[i].name + ": exponent of time in tokens", ways[i].exponent, power.exponent, 0.35));
    const VisionSizes z{static_cast<int64_t>(std::lround(std::sqrt(tokens.back()))), H * D, H, 1, 1, 0};
    const double saves = static_cast<double>(ways[0].attention(z, 0)) / static_cast<double>(ways[i].attention(z, 0));
    table.rows.push_back({ways[i].name, saves, seconds[0].back() / seconds[i].back(), power.exponent, 1e3 * seconds[i].back()});
    Series series{.name = ways[i].name, .x = tokens, .mark = Mark::both};
    for (const double each : seconds[i]) series.y.push_back(1e3 * each);
    lines.series.push_back(std::move(series));
  }
  return lines;
}

// Where queries look that are told nothing: which keys there are for them.
Figure seen_by_ways(const CheaperOptions& options) {
  const int64_t side = 8, N = side * side;
  const Tensor none = Tensor::zeros({1, 1, N, 1});
  Figure film{.title = "What a query sees", .caption = "On 8 x 8 patches; every second layer shifts the chunks.", .parameter = "query"};
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

Report run_cheaper(const CheaperOptions& options, const Say& say) {
  check<UsageError>(options.chunk % 2 == 0, "cheaper-vision: chunk=", options.chunk, ", expected an even number");
  std::vector<CheaperWay> ways = cheaper_ways(options);
  Report report;
  report.statement =
      "Multiply-adds are as counted, and the time of one attention grows as its formula says: with the square of the tokens between all "
      "pairs and with pooled keys, in proportion to them in chunks, between channels and through kernels. Tokens that see only their "
      "neighbours name shapes as well as those that see all; without any others they do not. Larger patches save most here, and lose "
      "nothing.";
  Table times{.title = "Attention alone, at the largest grid",
              .columns = {"way", "saves, by multiply-adds", "saves, by time", "exponent", "ms"}};
  const Lines lines = time_cheaper(ways, options, report, times);
  for (CheaperWay& way : ways) learn_cheaper(way, options, report, say);

  const auto named = [&](const std::string& name) -> const CheaperWay& {
    return *std::find_if(ways.begin(), ways.end(), [&](const CheaperWay& way) { return way.name == name; });
  };
  const CheaperWay &all = named("all pairs"), &alone = named("every token alone"), &larger = named("larger patches");
  Table kept{.title = "Whole models",
             .columns = {"way", "multiply-adds", "of those of all pairs", "test accuracy, 95 % of the mean", "less all pairs",
                         "less every token alone"}};
  BarSet bars{.name = "test accuracy"};
  std::vector<std::string> groups;
  for (const CheaperWay& way : ways) {
    const Interval right = way.right.interval();
    kept.rows.push_back({way.name, way.work, way.work / all.work, interval_text(right),
                         interval_text(differences(way.right, all.right).interval()),
                         interval_text(differences(way.right, alone.right).interval())});
    groups.push_back(way.name);
    bars.values.push_back(right.mean), bars.low.push_back(right.low), bars.high.push_back(right.high);
  }
  for (const char* name : {"all pairs", "square windows", "chunks, shifted"})
    report.measured.push_back(at_least(std::string(name) + " less every token alone: accuracy, lower end", 0,
                                       differences(named(name).right, alone.right).interval().low));
  for (const char* name : {"square windows", "chunks, shifted"})
    report.measured.push_back(
        at_least(std::string(name) + " less all pairs: accuracy, upper end", 0, differences(named(name).right, all.right).interval().high));
  report.measured.push_back(
      at_least("larger patches less all pairs: accuracy, lower end", 0, differences(larger.right, all.right).interval().low));
  report.measured.push_back(at_most("larger patches: multiply-adds of those of all pairs", 0.5, larger.work / all.work));
  report.tables = {std::move(kept), std::move(times)};
  report.figures.push_back(figure("Time of one attention", "4 heads of width 16. Slopes are exponents.", Plot{.body = lines}));
  report.figures.push_back(figure("Accuracy kept", "Mean over runs with its 95 % interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {bars}}}));
  report.figures.push_back(seen_by_ways(options));
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
          "Windows, chunks, pooled keys, channels, kernels and larger patches cut the cost of a vision transformer as their formulas "
          "say, and some of them keep its accuracy.",
      .formula =
          R"(3 P^2 N D + L \left(12 N D^2 + 2 S D\right) + D C, \quad S = N^2 \text{ (all pairs)}, \; N^2 / r^2 \text{ (pooled keys)}, \; )"
          R"(N w \text{ (chunks)}, \; N D / H \text{ (channels)})",
      .prepare = prepared(declare_cheaper, run_cheaper)};
}

}  // namespace heed::lab
