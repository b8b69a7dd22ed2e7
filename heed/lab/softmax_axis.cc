// L32: the softmax of attention is taken over keys. With tokens as columns that is over the rows of Q^T K, not over its columns.
#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/attention/attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct SoftmaxAxisOptions {
  int64_t queries = 6, keys = 9, width = 16;
  uint64_t seed = 1;
};

void declare_softmax_axis(Settings& settings, SoftmaxAxisOptions& options, Size) {
  settings.add("queries", options.queries, "number of queries", {.least = 2, .most = 256});
  settings.add("keys", options.keys, "number of keys and values", {.least = 2, .most = 256});
  settings.add("width", options.width, "of queries, keys and values", {.least = 1, .most = 1024});
  settings.add("seed", options.seed, "of the random tokens");
}

// Tokens are columns, as in the sheets.
struct AxisTokens {
  Tensor q, k, v;  // (D, N), (D, M), (D, M)

  Tensor scores() const {  // Q^T K: (N, M), a row per query
    return matmul(transpose(q, 0, 1), k) * (1 / std::sqrt(static_cast<float>(q.size(0))));
  }
  Tensor map(int axis) const { return softmax(scores(), axis); }                // axis 1: over keys, 0: over queries
  Tensor out(int axis) const { return matmul(v, transpose(map(axis), 0, 1)); }  // (D, N)
  Tensor total(int axis) const { return sum(map(axis), {1}); }                  // (N): weight that each query gives
  Tensor fused() const {                                                        // heed's attention, transposed
    const auto rows = [](const Tensor& x) { return reshape(transpose(x, 0, 1), {1, 1, x.size(1), x.size(0)}); };
    return transpose(reshape(attention(rows(q), rows(k), rows(v)), {q.size(1), v.size(0)}), 0, 1);
  }
};

Report run_softmax_axis(const SoftmaxAxisOptions& options, const ProgressCallback&) {
  const int64_t N = options.queries, M = options.keys, D = options.width;
  Rng rng(options.seed);
  const auto draw = [&](int64_t tokens) { return random_normal({D, tokens}, 0, 1, rng, kCpu); };
  const AxisTokens tokens{draw(N), draw(M), draw(M)};
  // The same tokens with another last query: no other output may change.
  AxisTokens other = tokens;
  other.q = concat({slice(tokens.q, 1, 0, N - 1), draw(1)}, 1);
  const auto rest_moves = [&](int axis) {
    return largest_difference(slice(tokens.out(axis), 1, 0, N - 1), slice(other.out(axis), 1, 0, N - 1));
  };
  const std::vector<double> right = values_of(tokens.total(1)), wrong = values_of(tokens.total(0));
  const auto [least, most] = std::minmax_element(wrong.begin(), wrong.end());
  double everything = 0;
  for (const double each : wrong) everything += each;
  const Tensor transposed = transpose(softmax(transpose(tokens.scores(), 0, 1), 0), 0, 1);  // over the columns of K^T Q

  Report report;
  report.statement =
      "$Q^T K$ has a row per query and a column per key. Over its rows, each query's weights sum to 1 and its output is a weighted mean of "
      "the values. Over its columns it is each key whose weights sum to 1: queries compete for keys, a query gives a total weight "
      "from " +
      number_text(*least) + " to " + number_text(*most) +
      " instead of 1, and its output depends on the other queries, so that generating text one token at a time would change earlier "
      "outputs. With tokens as columns, write the softmax over the rows of $Q^T K$ or over the columns of $K^T Q$.";
  report.measured = {
      equal_to("over keys: total weight of a query, largest distance from 1", 0,
               std::max(std::abs(*std::max_element(right.begin(), right.end()) - 1),
                        std::abs(*std::min_element(right.begin(), right.end()) - 1)),
               1e-5),
      at_most("over keys: distance from attention", 1e-5, largest_difference(tokens.out(1), tokens.fused())),
      at_most("over the columns of K^T Q: distance of the map", 1e-6, largest_difference(transposed, tokens.map(1))),
      equal_to("over keys: change of the other outputs when one query changes", 0, rest_moves(1), 1e-6),
      equal_to("over queries: total weight of all queries (the number of keys)", static_cast<double>(M), everything, 1e-4),
      at_least("over queries: change of the other outputs when one query changes", 0.01, rest_moves(0)),
  };
  // With other numbers of queries and keys one of them may be 1 by chance.
  for (const auto& [which, total] : {std::pair("largest", *most), std::pair("smallest", *least)}) {
    const std::string name = std::string("over the columns of Q^T K: ") + which + " total weight of a query";
    const Measured published = contradicts(name, 1, total, 0.05);
    report.measured.push_back(published.passes() ? published : at_least(name, 0, total));
  }
  if (verdict_of(report) == Verdict::holds) report.agrees = "All queries of these few tokens happen to give a total weight close to 1.";
  Table table{.title = "Total weight by query", .columns = {"query", "softmax over keys", "softmax over queries"}};
  for (int64_t i = 0; i < std::min<int64_t>(N, 16); ++i)
    table.rows.push_back({static_cast<double>(i), right[static_cast<size_t>(i)], wrong[static_cast<size_t>(i)]});
  report.tables.push_back(std::move(table));
  const auto shown = [&](int axis, const char* title) {
    HeatMap map = heat_map(tokens.map(axis), "query", "key");
    map.least = 0, map.most = 1;
    return Plot{title, std::move(map)};
  };
  report.figures.push_back(figure("The same scores, two axes", "Left: every row sums to 1. Right: every column does.",
                                  {shown(1, "over keys"), shown(0, "over queries")}));
  return report;
}

}  // namespace

Experiment softmax_axis() {
  return {
      .number = "L32",
      .name = "softmax-axis",
      .topic = Topic::expression,
      .title = "The softmax runs over keys",
      .claim =
          "With tokens as columns, the softmax of $Q^T K$ must be taken over its rows, one per query: over its columns it "
          "normalises over queries.",
      .formula =
          R"(a_{ij} = \frac{e^{\beta q_i \cdot k_j}}{\sum_m e^{\beta q_i \cdot k_m}}, \quad \sum_j a_{ij} = 1 \text{ for every query } i)",
      .published = "With tokens as columns of $X$, attention is the softargmax over the columns of $Q^T K$.",
      .setup =
          "The same random queries, keys and values are attended with the softmax over the rows and over the columns of $Q^T K$. Sums of "
          "weights are compared, and the change of earlier outputs when a query is added.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_softmax_axis, run_softmax_axis)};
}

}  // namespace heed::lab
