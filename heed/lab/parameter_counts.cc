// L10: parameters of attention and of a fully connected layer, from formulas and from real layers.
#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

struct CountOptions {
  int64_t tokens = 16, width = 32;
  int64_t heads = 9, inputs = 40, hidden = 24, values = 20, outputs = 48;  // of the multi-head layer, all different
  uint64_t seed = 1;
};

void declare_counts(Settings& settings, CountOptions& options, Size size) {
  if (size == Size::full) options.tokens = 64, options.width = 64;
  settings.add("tokens", options.tokens, "N, of one head and of the fully connected layer", {.least = 2, .most = 2048});
  settings.add("width", options.width, "D, of their tokens", {.least = 2, .most = 2048});
  settings.add("heads", options.heads, "of the multi-head layer", {.least = 1, .most = 256});
  settings.add("inputs", options.inputs, "width of its tokens", {.least = 1, .most = 8192});
  settings.add("hidden", options.hidden, "width of a head's queries and keys", {.least = 1, .most = 8192});
  settings.add("values", options.values, "width of a head's values", {.least = 1, .most = 8192});
  settings.add("outputs", options.outputs, "width of the outputs", {.least = 1, .most = 8192});
  settings.add("seed", options.seed, "of weights and tokens");
}

// Shapes only: the weights of a large fully connected layer do not fit into memory.
class CountedLayers {
 public:
  explicit CountedLayers(uint64_t seed, bool shapes_only = true) : params_(seed, {.shapes_only = shapes_only}) {}

  Scope scope() { return Scope(params_, initializer::bert()); }
  // Elements of the parameters whose name contains `of` and ends with `kind`.
  double count(const std::string& of, const std::string& kind) const {
    int64_t out = 0;
    for (const Parameter& parameter : params_.all())
      if (parameter.name.find(of) != std::string::npos && parameter.name.ends_with(kind)) out += parameter.tensor.count();
    return static_cast<double>(out);
  }

 private:
  Params params_;
};

struct LayerCounts {
  double head_weights, head_biases, joined_weights, joined_biases;  // of one head, and of a layer over all elements of all tokens
};

LayerCounts counts_at(int64_t N, int64_t D, uint64_t seed) {
  CountedLayers layers(seed);
  make_multi_head(layers.scope() / "head", {.width = D, .heads = 1});
  const Linear joined(layers.scope() / "joined", N * D, N * D);
  const auto head = [&](const std::string& kind) {
    return layers.count("head.query", kind) + layers.count("head.key", kind) + layers.count("head.value", kind);
  };
  return {head("weight"), head("bias"), layers.count("joined", "weight"), layers.count("joined", "bias")};
}

// The number of entries in the map of a real layer.
double map_count(int64_t N, int64_t D, uint64_t seed) {
  CountedLayers layers(seed, false);
  const MultiHeadAttention layer = make_multi_head(layers.scope() / "head", {.width = D, .heads = 1});
  Rng rng(seed);
  const Heads at = layer.project(random_normal({1, N, D}, 0, 1, rng, kCpu));
  return static_cast<double>(attention_probabilities(at.q, at.k).count());
}

// The multi-head layer, formula and layer. Projections have no biases, the output has one.
void add_multi_head_counts(Report& report, const CountOptions& options) {
  CountedLayers layers(options.seed);
  make_multi_head(layers.scope(), {.width = options.inputs,
                                   .heads = options.heads,
                                   .head_width = options.hidden,
                                   .value_width = options.values,
                                   .output_width = options.outputs,
                                   .bias = false});
  const auto H = static_cast<double>(options.heads), in = static_cast<double>(options.inputs), hidden = static_cast<double>(options.hidden);
  const auto values = static_cast<double>(options.values), out = static_cast<double>(options.outputs);
  const std::vector<double> formula{H * in * hidden, H * in * hidden, H * in * values, H * values * out, out};
  const std::vector<double> counted{layers.count("query", "weight"), layers.count("key", "weight"), layers.count("value", "weight"),
                                    layers.count("output", "weight"), layers.count("output", "bias")};
  double predicted = 0, found = 0;
  for (size_t i = 0; i < formula.size(); ++i) predicted += formula[i], found += counted[i];
  report.measured.push_back(equal_to("multi-head layer: N_h (2 D_i D_hid + D_i D_o) + N_h D_o D_out + D_out", predicted, found));
  report.figures.push_back(figure("The parts of the multi-head layer", "Formula and layer have the same number in every part.",
                                  Plot{.body = Bars{.up = {"numbers"},
                                                    .groups = {"queries", "keys", "values", "output", "its bias"},
                                                    .sets = {{"formula", formula}, {"layer", counted}}}}));
}

Report run_counts(const CountOptions& options, const ProgressCallback&) {
  const auto N = static_cast<double>(options.tokens), D = static_cast<double>(options.width);
  const LayerCounts own = counts_at(options.tokens, options.width, options.seed);
  std::vector<double> tokens, heads, maps, joined, joined_biases;
  Table table{.title = "As the number of tokens grows", .columns = {"N", "one head", "its map", "fully connected: weights", "biases"}};
  for (int64_t n = 1; n <= 8; n *= 2) {
    const LayerCounts at = counts_at(n * options.tokens, options.width, options.seed);
    tokens.push_back(N * static_cast<double>(n)), heads.push_back(at.head_weights + at.head_biases);
    maps.push_back(tokens.back() * tokens.back()), joined.push_back(at.joined_weights), joined_biases.push_back(at.joined_biases);
    table.rows.push_back({tokens.back(), heads.back(), maps.back(), joined.back(), joined_biases.back()});
  }
  Report report;
  report.statement =
      "A head has 3D² weights and 3D biases for any number of tokens; its map has N² weights, which are computed, not learned. A fully "
      "connected layer over all elements of all tokens has D²N² weights and DN biases, one for every output.";
  report.measured = {
      equal_to("weights of one head: 3D²", 3 * D * D, own.head_weights),
      equal_to("biases of one head: 3D", 3 * D, own.head_biases),
      equal_to("weights of its map: N²", N * N, map_count(options.tokens, options.width, options.seed)),
      equal_to("weights of a fully connected layer: D²N²", D * D * N * N, own.joined_weights),
      equal_to("biases of a fully connected layer: DN", D * N, own.joined_biases),
      equal_to("one head: exponent in N", 0, fitted_power(tokens, heads).exponent, 1e-9),
      equal_to("fully connected weights: exponent in N", 2, fitted_power(tokens, joined).exponent, 1e-9),
  };
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure("Parameters as the number of tokens grows", "A head has the same parameters for any number of tokens.",
                                  Plot{.body = Lines{.across = {"tokens N", true},
                                                     .up = {"numbers", true},
                                                     .series = {{"fully connected, learned", tokens, joined, Mark::both},
                                                                {"one head, learned", tokens, heads, Mark::both},
                                                                {"its map, computed", tokens, maps, Mark::dashed}}}}));
  add_multi_head_counts(report, options);
  report.measured.push_back(contradicts("biases of one head", 3, own.head_biases));
  report.measured.push_back(contradicts("fully connected biases, N²: exponent in N", 2, fitted_power(tokens, joined_biases).exponent));
  return report;
}

}  // namespace

Experiment parameter_counts() {
  return {.number = "L10",
          .name = "parameter-counts",
          .topic = Topic::cost,
          .title = "Parameters of attention, counted",
          .claim =
              "One head of width D has $3D^2$ weights and $3D$ biases and computes a map of $N^2$ weights; a fully connected layer over "
              "the same N tokens has $D^2 N^2$ weights and $D N$ biases.",
          .formula = R"(N_h (2 D_i D_{hid} + D_i D_o) + N_h D_o D_{out} + D_{out})",
          .published = R"(One head has 3 biases, and the fully connected layer $N^2$.)",
          .setup = "The layers are built, and their parameters are counted for a growing number of tokens.",
          .expected = Verdict::corrected,
          .prepare = prepared(declare_counts, run_counts)};
}

}  // namespace heed::lab
