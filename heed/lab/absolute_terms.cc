// L48: the four terms of a score with absolute positions, A = (Z + P) W_q W_k^T (Z + P)^T, one at a time.
#include <algorithm>
#include <array>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/models/score_terms.h"
#include "heed/nn/positions.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct AbsoluteTermsOptions {
  int64_t side = 8, width = 64, head_width = 16, query = 27;
  float content = 1;
  std::string positions = "sinusoidal";
  uint64_t seed = 1;
};

void declare_absolute_terms(Settings& settings, AbsoluteTermsOptions& options, Size) {
  settings.add("side", options.side, "of the square grid of tokens", {.least = 2, .most = 32});
  settings.add("width", options.width, "of tokens, a multiple of 4", {.least = 4, .most = 1024});
  settings.add("head_width", options.head_width, "of queries and keys", {.least = 1, .most = 256});
  settings.add("query", options.query, "which query is drawn, from 0", {.least = 0, .most = 1023});
  settings.add("content", options.content, "standard deviation of the content", {.least = 0, .most = 100});
  settings.add("positions", options.positions, "sinusoidal, or random (as learned ones begin)");
  settings.add("seed", options.seed, "of content and weights");
}

struct ScoreParts {
  Tensor z, p;        // (N, D)
  Tensor query, key;  // (d, D)

  // The score of every query with every key, of queries from a and keys from b. -> (N, N)
  Tensor of(const Tensor& a, const Tensor& b) const {
    return matmul(linear(a, query), transpose(linear(b, key), 0, 1)) * (1 / std::sqrt(static_cast<float>(query.size(0))));
  }
  std::array<Tensor, 4> all() const { return {of(z, z), of(z, p), of(p, z), of(p, p)}; }
  Tensor whole() const { return of(z + p, z + p); }
};

double mean_square(const Tensor& x) { return mean(x * x).item(); }

Report run_absolute_terms(const AbsoluteTermsOptions& options, const ProgressCallback&) {
  const NoGrad no_grad;
  const int64_t side = options.side, N = side * side, D = options.width;
  check<UsageError>(D % 4 == 0, "lab: width=", D, ", expected a multiple of 4");
  check<UsageError>(options.query < N, "lab: query=", options.query, ", expected one of the ", N, " tokens, from 0");
  check<UsageError>(options.positions == "sinusoidal" || options.positions == "random", "lab: positions='", options.positions,
                    "', expected sinusoidal or random");
  Rng rng(options.seed);
  const auto weights = [&] { return random_normal({options.head_width, D}, 0, 1 / std::sqrt(static_cast<float>(D)), rng, kCpu); };
  const auto content = [&] { return random_normal({N, D}, 0, options.content, rng, kCpu); };
  const Tensor positions = options.positions == "sinusoidal" ? reshape(sinusoidal_positions_2d(side, side, D), {N, D})
                                                             : random_normal({N, D}, 0, 0.7f, rng, kCpu);
  ScoreParts terms{content(), positions, weights(), weights()};
  const std::array<Tensor, 4> parts = terms.all();
  const Tensor whole = terms.whole();
  ScoreParts other = terms;  // the same positions with other content
  other.z = content();
  const std::array<Tensor, 4> changed = other.all();

  // Tokens in another order: content-content moves with them, position-position stays.
  std::vector<int64_t> order = random_permutation(N, rng);
  ScoreParts shuffled = terms;
  shuffled.z = index_select(terms.z, 0, Tensor::from(order, {N}, kCpu));
  const std::array<Tensor, 4> moved = shuffled.all();
  const Tensor indices = Tensor::from(order, {N}, kCpu);
  const Tensor follows = index_select(index_select(parts[0], 0, indices), 1, indices);

  double total = 0;
  for (const Tensor& part : parts) total += mean_square(part);
  Report report;
  Table table{.title = "The four terms", .columns = {"term", "mean square", "share", "changes with the content"}};
  std::string shares;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double share = mean_square(parts[i]) / std::max(total, 1e-30);
    table.rows.push_back({kScoreTermNames[i], mean_square(parts[i]), share, largest_difference(parts[i], changed[i]) > 0 ? "yes" : "no"});
    shares += (i == 0 ? "" : i == 3 ? " and " : ", ") + number_text(100 * share) + " % " + kScoreTermNames[i];
  }
  report.statement =
      "The score of two tokens with absolute positions is the sum of four: content with content, content with position, position with "
      "content, position with position. Only the last is the same for every input; only the first moves with the tokens when their order "
      "changes. Here their mean squares are " +
      shares + ".";
  const double size = largest(whole);
  report.measured = {
      at_most("distance of the sum of the four terms from the score, relative", 1e-5,
              largest_difference(parts[0] + parts[1] + parts[2] + parts[3], whole) / size),
      equal_to("position-position: change with other content", 0, largest_difference(parts[3], changed[3])),
      at_most("content-content after a permutation: distance from the permuted term", 1e-5 * size + 1e-6,
              largest_difference(moved[0], follows)),
  };
  if (options.content > 0) {
    report.measured.push_back(at_least("content-position: change with other content, relative", 0.01,
                                       largest_difference(parts[1], changed[1]) / largest(parts[1])));
    report.measured.push_back(at_least("position-content: change with other content, relative", 0.01,
                                       largest_difference(parts[2], changed[2]) / largest(parts[2])));
  }
  report.tables.push_back(std::move(table));
  Figure film{.title = "The terms for one query",
              .caption = "Scores of the query with every key of the grid, one map per term; one scale of colours per query.",
              .parameter = "query"};
  for (const int64_t query : {int64_t{0}, options.query, N - 1}) {
    Frame frame{.value = std::to_string(query)};
    double most = 0;
    for (const Tensor& part : parts) most = std::max(most, largest(slice(part, 0, query, query + 1)));
    for (size_t i = 0; i <= parts.size(); ++i) {
      HeatMap map = heat_map(reshape(slice(i < parts.size() ? parts[i] : whole, 0, query, query + 1), {side, side}));
      map.diverging = true, map.least = -most, map.most = most;
      frame.plots.push_back({i < parts.size() ? kScoreTermNames[i] : "sum", std::move(map)});
    }
    film.frames.push_back(std::move(frame));
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment absolute_terms() {
  return {.number = "L48",
          .name = "absolute-terms",
          .topic = Topic::positions,
          .title = "The four terms of a score with absolute positions",
          .claim =
              "A score with absolute positions is the sum of four terms, of which one depends on positions alone and one on content alone.",
          .formula = R"((z_q + p_q) W_q W_k^T (z_k + p_k)^T = z_q W z_k^T + z_q W p_k^T + p_q W z_k^T + p_q W p_k^T, \quad W = W_q W_k^T)",
          .setup =
              "Random tokens and absolute positions are projected to queries and keys. The score of every pair is computed whole and as "
              "four separate products, which are summed, compared and drawn. `heed inspect MODEL INPUT --terms` shows the terms of a "
              "trained model.",
          .prepare = prepared(declare_absolute_terms, run_absolute_terms)};
}

}  // namespace heed::lab
