// L13: attention is permutation-equivariant without positions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

constexpr int64_t kColumns = 4;  // of the grid of tokens

struct EquivarianceOptions {
  int64_t rows = 3, width = 16, heads = 2, permutations = 20;
  float strength = 0.5f;
  uint64_t seed = 1;
};

void declare_equivariance(Settings& settings, EquivarianceOptions& options, Size size) {
  if (size == Size::full) options.permutations = 500;
  settings.add("rows", options.rows, "of the grid of tokens, which has 4 columns", {.least = 2, .most = 32});
  settings.add("width", options.width, "of tokens, a multiple of 4 and of twice the heads", {.least = 4, .most = 512});
  settings.add("heads", options.heads, "of the layer", {.least = 1, .most = 64});
  settings.add("permutations", options.permutations, "random ones to test, in addition to all of 5 tokens", {.least = 1, .most = 10000});
  settings.add("strength", options.strength, "standard deviation of learned positions", {.least = 0.05, .most = 5});
  settings.add("seed", options.seed, "of tokens, weights and permutations");
}

using TokenLayer = std::function<Tensor(const Tensor& x)>;  // (1, N, D) -> (1, N, D)
struct NamedLayer {
  std::string name;
  TokenLayer layer;
};

Tensor tokens_in_order(const Tensor& x, const std::vector<int64_t>& order) {
  return index_select(x, 1, Tensor::from(order, {std::ssize(order)}, kCpu));
}

// |layer(permuted x) - permuted layer(x)|, relative to the largest output.
double order_distance(const TokenLayer& layer, const Tensor& x, const std::vector<int64_t>& order) {
  const Tensor y = layer(x);
  return largest_difference(layer(tokens_in_order(x, order)), tokens_in_order(y, order)) / largest(y);
}

class EquivarianceLayers {
 public:
  EquivarianceLayers(const EquivarianceOptions& options, int64_t N)
      : options_(options),
        N_(N),
        params_(options.seed),
        scope_(params_, make_initializers(options)),
        plain_(make_multi_head(scope_ / "layer", {.width = options.width, .heads = options.heads})) {}

  const MultiHeadAttention& plain() const { return plain_; }

  // Layers without positions.
  std::vector<NamedLayer> without() const {
    std::vector<NamedLayer> out{{"soft attention", layer_of(plain_)}};
    const auto add = [&](const std::string& name, const AttentionKind& kind) {
      MultiHeadAttention layer = plain_;
      layer.kind = kind;
      out.push_back({name, layer_of(layer)});
    };
    add("hard attention", {.kind = AttentionKind::Kind::hard});
    add("linear attention", {.kind = AttentionKind::Kind::linear});
    add("channel attention", {.kind = AttentionKind::Kind::channel});
    return out;
  }

  // All position encodings, and the causal mask.
  std::vector<NamedLayer> with_positions() const {
    const int64_t H = options_.heads, D = options_.width, rows = N_ / kColumns;
    std::vector<NamedLayer> out;
    const auto added = [&](const std::string& name, const Tensor& positions) {
      out.push_back({name, [layer = plain_, positions](const Tensor& x) { return layer(x + positions); }});
    };
    const auto scored = [&](const std::string& name, const ScorePositions& positions) {
      MultiHeadAttention layer = plain_;
      layer.positions = {positions};
      out.push_back({name, layer_of(layer)});
    };
    added("sinusoidal", sinusoidal_positions(N_, D));
    added("sinusoidal on a grid", sinusoidal_positions_2d(rows, kColumns, D));
    added("learned", LearnedPositions(scope_ / "learned", N_, D)(N_).detach());
    added("learned on a grid", LearnedPositions2d(scope_ / "grid", rows, kColumns, D)().detach());
    MultiHeadAttention rotary_layer = plain_;
    rotary_layer.rotary = Rotary(N_, D / H);
    out.push_back({"rotary", layer_of(rotary_layer)});
    scored("relative table", Term(relative_positions(scope_ / "relative", H, N_ - 1)));
    scored("relative table on a grid", Term(relative_positions_2d(scope_ / "relative_grid", H, rows, kColumns)));
    scored("relative buckets",
           Term(BucketedBias{.table = scope_.get("buckets", {H, 8}, initializer::normal(options_.strength)), .far = 16}));
    scored("relative content", RelativeContent(scope_ / "content", H, D / H, D));
    scored("relative content on a grid", RelativeContent(scope_ / "content_grid", H, D / H, D, TokenGrid{rows, kColumns}));
    scored("slopes of distance (ALiBi)", Term(Alibi{alibi_slopes(H)}));
    scored("Gaussian on a grid", Term(gaussian_positions(scope_ / "gaussian", H, kColumns)));
    scored("Gaussian with covariance", Term(Gaussian2dFull{.spread = scope_.get("spread", {H, 2, 2}, initializer::normal(1)),
                                                           .center = scope_.get("center", {H, 2}, initializer::normal(1)),
                                                           .width = kColumns}));
    scored("causal mask", Term(Causal{}));
    return out;
  }

 private:
  static Initializers make_initializers(const EquivarianceOptions& options) {
    Initializers out = initializer::vit();
    out.weight = out.residual = initializer::lecun_normal();
    out.position = initializer::normal(options.strength);
    return out;
  }
  static TokenLayer layer_of(const MultiHeadAttention& layer) {
    return [layer](const Tensor& x) { return layer(x); };
  }

  EquivarianceOptions options_;
  int64_t N_;
  Params params_;
  Scope scope_;
  MultiHeadAttention plain_;
};

// The map of a layer for x, averaged over heads, with rows and columns restored to the original order. x: (1, N, D) -> (N, N)
Tensor map_in_order(const MultiHeadAttention& layer, const Tensor& x, const std::vector<int64_t>& inverse) {
  const Heads at = layer.project(x);
  const Tensor map = mean(reshape(attention_probabilities(at.q, at.k), {layer.heads, x.size(1), x.size(1)}), {0}),
               order = Tensor::from(inverse, {x.size(1)}, kCpu);
  return index_select(index_select(map, 0, order), 1, order);
}

void draw_equivariance(Report& report, const EquivarianceLayers& layers, const Tensor& x, const std::vector<int64_t>& order) {
  const int64_t N = x.size(1);
  std::vector<int64_t> same(static_cast<size_t>(N)), inverse(static_cast<size_t>(N));
  std::iota(same.begin(), same.end(), 0);
  for (int64_t i = 0; i < N; ++i) inverse[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
  Figure film{.title = "The map of shuffled tokens, restored to the original order",
              .caption = "Sinusoidal positions of growing strength are added to the tokens, before and after shuffling.",
              .parameter = "strength of positions"};
  const Tensor positions = sinusoidal_positions(N, x.size(2));
  for (const float strength : {0.0f, 0.1f, 0.2f, 0.4f, 0.7f, 1.0f, 1.5f, 2.0f, 3.0f}) {
    const Tensor before = map_in_order(layers.plain(), x + positions * strength, same);
    const Tensor after = map_in_order(layers.plain(), tokens_in_order(x, order) + positions * strength, inverse);
    HeatMap left = heat_map(before, "query", "key"), middle = heat_map(after, "query", "key"),
            right = heat_map(after - before, "query", "key");
    left.least = middle.least = 0, left.most = middle.most = 1;
    right.diverging = true, right.least = -0.5, right.most = 0.5;
    film.frames.push_back(
        {setting_text(strength), {Plot{"in order", left}, Plot{"shuffled, restored", middle}, Plot{"difference", right}}});
  }
  report.figures.push_back(std::move(film));
}

Report run_equivariance(const EquivarianceOptions& options, const ProgressCallback&) {
  const int64_t N = options.rows * kColumns, D = options.width;
  check<UsageError>(D % 4 == 0 && D % options.heads == 0 && D / options.heads % 2 == 0, "lab: width is ", D, " and heads ", options.heads,
                    ", expected a width divisible by 4 and by twice the heads");
  const NoGrad no_grad;
  Rng rng(options.seed, 1000);
  const Tensor x = random_normal({1, N, D}, 0, 1, rng, kCpu), few = random_normal({1, 5, D}, 0, 1, rng, kCpu),
               memory = random_normal({1, 9, D}, 0, 1, rng, kCpu);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t i = 0; i < options.permutations; ++i) orders.push_back(random_permutation(N, rng));
  std::vector<int64_t> reversed(static_cast<size_t>(N));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const EquivarianceLayers layers(options, N);

  Report report;
  report.statement =
      "Permuted inputs give the same outputs, permuted, for soft, hard, linear and channel attention, and cross-attention does not depend "
      "on the order of its keys. Every position encoding breaks that. Some keep a few symmetries: a penalty on the absolute distance "
      "cannot distinguish a sequence from its reversal.";
  Table table{.title = "Distance from the permuted output, relative to the largest output",
              .columns = {"", "random permutations", "reversal"}};
  Bars bars{.up = {"distance", true, 1e-8}, .sets = {{.name = "random permutations"}}};
  const auto measure_layer = [&](const NamedLayer& each) {
    double most = 0;
    for (const std::vector<int64_t>& order : orders) most = std::max(most, order_distance(each.layer, x, order));
    table.rows.push_back({each.name, most, order_distance(each.layer, x, reversed)});
    bars.groups.push_back(each.name), bars.sets[0].values.push_back(most);
    return most;
  };
  for (const NamedLayer& each : layers.without()) report.measured.push_back(at_most(each.name + ": distance", 1e-5, measure_layer(each)));
  double of_all = 0;
  std::vector<int64_t> each_of_five{0, 1, 2, 3, 4};
  do of_all = std::max(of_all, order_distance([&](const Tensor& y) { return layers.plain()(y); }, few, each_of_five));
  while (std::next_permutation(each_of_five.begin(), each_of_five.end()));
  report.measured.push_back(at_most("soft attention, all 120 permutations of 5 tokens: distance", 1e-5, of_all));
  const Tensor original = layers.plain()(x, memory), permuted_keys = layers.plain()(x, tokens_in_order(memory, random_permutation(9, rng)));
  report.measured.push_back(
      at_most("cross-attention, keys in another order: change", 1e-5, largest_difference(original, permuted_keys) / largest(original)));
  for (const NamedLayer& each : layers.with_positions()) {
    report.measured.push_back(at_least(each.name + ": distance", 0.01, measure_layer(each)));
    if (each.name.starts_with("slopes"))
      report.measured.push_back(at_most(each.name + ": distance under reversal", 1e-5, order_distance(each.layer, x, reversed)));
  }
  report.figures.push_back(figure("Which layers depend on the order",
                                  "The largest distance over random permutations, first without and then with positions.",
                                  Plot{.body = std::move(bars)}));
  draw_equivariance(report, layers, x, orders[0]);
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace

Experiment permutation_equivariance() {
  return {
      .number = "L13",
      .name = "permutation-equivariance",
      .topic = Topic::positions,
      .title = "Attention is permutation-equivariant",
      .claim =
          "Self-attention of permuted tokens is the permuted self-attention, for every permutation; each position encoding breaks that.",
      .formula = R"(\operatorname{Sa}[X P] = \operatorname{Sa}[X] P \quad \forall P)",
      .setup =
          "Random tokens pass through layers of every kind, in their order and in random other orders. The distance is between the output "
          "of permuted tokens and the permuted output, relative to the largest output.",
      .prepare = prepared(declare_equivariance, run_equivariance)};
}

}  // namespace heed::lab
