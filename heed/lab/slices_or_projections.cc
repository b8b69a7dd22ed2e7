// L34: heads made from slices of the tokens against heads made from projections, and which widths must agree in cross-attention.
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct SliceOptions {
  int64_t tokens = 10, width = 32, heads = 4;
  uint64_t seed = 1;
};

void declare_slices(Settings& settings, SliceOptions& options, Size) {
  settings.add("tokens", options.tokens, "number of tokens", {.least = 2, .most = 512});
  settings.add("width", options.width, "of tokens, a multiple of the heads", {.least = 4, .most = 1024});
  settings.add("heads", options.heads, "number of heads", {.least = 2, .most = 64});
  settings.add("seed", options.seed, "of tokens and weights");
}

Tensor head_rows(const Tensor& x) { return reshape(x, {1, 1, x.size(0), x.size(1)}); }

// Every head projects its own slice of the tokens. weights: three of (D/H, D/H) per head. x: (N, D) -> (N, D)
struct SlicedHeads {
  std::vector<std::array<Tensor, 3>> weights;

  Tensor operator()(const Tensor& x) const {
    const int64_t H = std::ssize(weights), d = x.size(1) / H;
    Tensors out;
    for (int64_t h = 0; h < H; ++h) {
      const Tensor own = slice(x, 1, h * d, (h + 1) * d);
      const auto& [q, k, v] = weights[static_cast<size_t>(h)];
      out.push_back(reshape(attention(head_rows(linear(own, q)), head_rows(linear(own, k)), head_rows(linear(own, v))), {x.size(0), d}));
    }
    return concat(out, 1);
  }
  int64_t parameters() const {
    int64_t out = 0;
    for (const auto& head : weights)
      for (const Tensor& each : head) out += count(each.shape());
    return out;
  }
};

// Every head projects the whole token. query, key, value: (D, D), the rows of head h from h D/H on.
struct ProjectedHeads {
  Tensor query, key, value;
  int64_t heads;

  Tensor operator()(const Tensor& x) const {
    const int64_t N = x.size(0), D = x.size(1), d = D / heads;
    const auto split_heads = [&](const Tensor& w) {
      return reshape(transpose(reshape(linear(x, w), {N, heads, d}), 0, 1), {1, heads, N, d});
    };
    return reshape(transpose(reshape(attention(split_heads(query), split_heads(key), split_heads(value)), {heads, N, d}), 0, 1), {N, D});
  }
  int64_t parameters() const { return count(query.shape()) + count(key.shape()) + count(value.shape()); }
};

// The matrices of the heads on the diagonal, zeros elsewhere. -> (D, D)
Tensor block_diagonal(const SlicedHeads& heads, size_t which) {
  const int64_t H = std::ssize(heads.weights), d = heads.weights[0][which].size(0);
  Tensors rows;
  for (int64_t h = 0; h < H; ++h) {
    Tensors row;
    for (int64_t column = 0; column < H; ++column)
      row.push_back(column == h ? heads.weights[static_cast<size_t>(h)][which] : Tensor::zeros({d, d}, kCpu));
    rows.push_back(concat(row, 1));
  }
  return concat(rows, 0);
}

// How much the first head's output changes when the last channel of all tokens does.
template <class Layer>
double effect_of_last_channel(const Layer& layer, const Tensor& x, int64_t d) {
  std::vector<float> one(static_cast<size_t>(x.size(1)));
  one.back() = 1;
  const Tensor changed = x + Tensor::from(one, {1, x.size(1)}, kCpu) * slice(x, 1, 0, 1);
  return largest_difference(slice(layer(changed), 1, 0, d), slice(layer(x), 1, 0, d));
}

// Runs cross-attention from 5 queries to 7 keys for all combinations of widths and counts those that work.
Table try_widths(Report& report, Rng& rng) {
  Table table{.title = "Cross-attention: 5 queries, 7 keys and values", .columns = {"queries", "keys", "values", "output"}};
  double accepted = 0, as_expected = 0, all = 0;
  for (const int64_t q : {8, 16})
    for (const int64_t k : {8, 16})
      for (const int64_t v : {8, 16, 24}) {
        std::string result;
        bool runs = true;
        try {
          const Tensor out = attention(random_normal({1, 1, 5, q}, 0, 1, rng, kCpu), random_normal({1, 1, 7, k}, 0, 1, rng, kCpu),
                                       random_normal({1, 1, 7, v}, 0, 1, rng, kCpu));
          result = std::to_string(out.size(2)) + " tokens of " + std::to_string(out.size(3));
          runs = out.size(2) == 5 && out.size(3) == v;
        } catch (const Error&) {
          result = "refused: no q·k", runs = false;
        }
        all += 1, accepted += runs, as_expected += runs == (q == k);
        table.rows.push_back({static_cast<double>(q), static_cast<double>(k), static_cast<double>(v), result});
      }
  report.measured.push_back(equal_to("combinations of widths that run: those with equal queries and keys", all / 2, accepted));
  report.measured.push_back(equal_to("combinations that run exactly if queries and keys agree", all, as_expected));
  return table;
}

Report run_slices(const SliceOptions& options, const ProgressCallback&) {
  const NoGrad no_grad;
  const int64_t N = options.tokens, D = options.width, H = options.heads, d = D / H;
  check<UsageError>(D % H == 0, "lab: width=", D, " is no multiple of heads=", H);
  Rng rng(options.seed);
  const Tensor x = random_normal({N, D}, 0, 1, rng, kCpu);
  const auto matrix = [&](int64_t size) { return random_normal({size, size}, 0, 1 / std::sqrt(static_cast<float>(size)), rng, kCpu); };
  SlicedHeads sliced;
  for (int64_t h = 0; h < H; ++h) sliced.weights.push_back({matrix(d), matrix(d), matrix(d)});
  const ProjectedHeads projected{matrix(D), matrix(D), matrix(D), H};
  const ProjectedHeads blocks{block_diagonal(sliced, 0), block_diagonal(sliced, 1), block_diagonal(sliced, 2), H};

  Report report;
  report.statement =
      "A head on a slice sees D/H of the channels and nothing of the others; a head on a projection sees all of them. Slices are the "
      "special case of block-diagonal projections, with $3 D^2 / H$ weights instead of $3 D^2$. In cross-attention the widths of queries "
      "and keys must agree, because $q \\cdot k$ multiplies their elements; that of the values is free and becomes the width of the "
      "output. The number of "
      "queries is free; keys and values come in pairs.";
  const auto whole = static_cast<double>(D), parts = static_cast<double>(H);
  report.measured = {
      equal_to("slices: weights of queries, keys and values, 3 D²/H", 3 * whole * whole / parts, static_cast<double>(sliced.parameters())),
      equal_to("projections: weights of queries, keys and values, 3 D²", 3 * whole * whole, static_cast<double>(projected.parameters())),
      at_most("slices: distance from block-diagonal projections", 1e-5, largest_difference(sliced(x), blocks(x))),
      equal_to("slices: effect of the last channel on the first head", 0, effect_of_last_channel(sliced, x, d)),
      at_least("projections: effect of the last channel on the first head", 1e-3, effect_of_last_channel(projected, x, d)),
  };
  report.tables.push_back(try_widths(report, rng));
  const auto shown = [&](const Tensor& weight, const char* title) {
    HeatMap map = heat_map(weight, "output", "channel");
    map.diverging = true;
    return Plot{title, std::move(map)};
  };
  report.figures.push_back(figure("Weights of the queries", "Slices leave all but the blocks on the diagonal at 0.",
                                  {shown(blocks.query, "slices"), shown(projected.query, "projections")}));
  return report;
}

}  // namespace

Experiment slices_or_projections() {
  return {
      .number = "L34",
      .name = "slices-or-projections",
      .topic = Topic::expression,
      .title = "Heads of slices and heads of projections",
      .claim =
          "Heads made from slices of the tokens are a special case of heads made from projections, with a share of 1/H of their weights.",
      .formula = R"(q^h = W^h x_{[h]}, \; H \left(\frac{D}{H}\right)^2 = \frac{D^2}{H} \quad \text{against} \quad q^h = W^h x, \; D^2)",
      .setup =
          "Heads that read a slice of the channels are rebuilt as heads of block-diagonal projections and compared. Weights are counted, "
          "and cross-attention is computed with different widths.",
      .prepare = prepared(declare_slices, run_slices)};
}

}  // namespace heed::lab
