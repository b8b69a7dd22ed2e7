// L16: what one more token costs under a causal mask, with the keys and values of those before it kept.
#include "heed/attention/probabilities.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

struct NewTokenOptions {
  int64_t width = 128, heads = 4, least_tokens = 128, lengths = 5;
  int64_t rounds = 7;
  uint64_t seed = 1;
};

void declare_new_token(Settings& settings, NewTokenOptions& options, Size size) {
  if (size == Size::full) options.lengths = 6, options.rounds = 15;
  settings.add("width", options.width, "D, of tokens; a multiple of heads", {.least = 1, .most = 4096});
  settings.add("heads", options.heads, "of the layer", {.least = 1, .most = 256});
  settings.add("least_tokens", options.least_tokens, "the smallest N that a new token comes to", {.least = 4, .most = 65536});
  settings.add("lengths", options.lengths, "how many N, each twice the one before", {.least = 2, .most = 10});
  settings.add("rounds", options.rounds, "times that everything is timed", {.least = 3, .most = 1000});
  settings.add("seed", options.seed, "of weights and tokens");
}

// A layer up to its output projection, which neither count holds.
struct WritingLayer {
  Params params;
  MultiHeadAttention layer;

  explicit WritingLayer(const NewTokenOptions& options)
      : params(options.seed, {}, Weights::packed),
        layer(make_multi_head(Scope(params, initial::original(options.width)), {.width = options.width, .heads = options.heads})) {}

  // Everything once more. x: (1, N, D) -> (1, H, N, D / H)
  Tensor all(const Tensor& x) const { return layer.attend(layer.project(x), {.terms = {Causal{}}}); }
  // One token behind those of the cache. x: (1, 1, D) -> (1, H, 1, D / H)
  Tensor next(const Tensor& x, KeyValueCache& cache) const {
    const int64_t before = cache.length();
    const Heads at = layer.project(x, before);
    cache.append(at.k, at.v);
    return layer.attend({at.q, cache.keys(), cache.values()}, {.terms = {Causal{}}, .first_query = before});
  }
};

double counted_token_work(const std::function<void()>& work) {
  const WorkCount count;
  work();
  return static_cast<double>(count.multiply_adds());
}

// The map of the first tokens, as large as that of all: what is not there yet stays dark.
Figure growing_causal_map(const WritingLayer& made, const Tensor& x) {
  constexpr int64_t most = 12;
  Figure film{.title = "The map when a token comes",
              .caption = "A token brings one row, of as many weights as there are tokens. The rows above stay as they were.",
              .parameter = "tokens"};
  for (int64_t n = 3; n <= std::min<int64_t>(most, x.size(1)); ++n) {
    const Heads at = made.layer.project(slice(x, 1, 0, n));
    const Tensor map = reshape(attention_probabilities(at.q, at.k, {.terms = {Causal{}}}, {0}), {n, n});
    const std::vector<std::array<int64_t, 2>> around{{0, most - n}, {0, most - n}};
    HeatMap drawn = heat_map(pad(map, around), "query", "key");
    drawn.least = 0, drawn.most = 1;
    film.frames.push_back({std::to_string(n), {Plot{.body = std::move(drawn)}}});
  }
  return film;
}

Report run_new_token(const NewTokenOptions& options, const Say& say) {
  check<UsageError>(options.width % options.heads == 0, "new-token: a width of ", options.width, " in ", options.heads,
                    " heads, expected a multiple");
  const WritingLayer made(options);
  const auto D = static_cast<double>(options.width);
  const int64_t longest = options.least_tokens << (options.lengths - 1);
  Rng rng(options.seed);
  const Tensor x = random_normal({1, longest + 1, options.width}, 0, 1, rng);
  Report report;
  report.statement =
      "A new token costs one projection, 3D², one row of N+1 scores and one weighted sum of N+1 values. No earlier output changes, for no "
      "earlier query sees the new key. With keys and values kept, the outputs are the same and the time of a token grows with N at most, "
      "not with "
      "N².";
  std::vector<double> tokens, kept_work, again_work, seconds_kept, seconds_again;
  std::vector<KeyValueCache> caches(static_cast<size_t>(options.lengths));
  std::vector<std::function<void()>> works;
  double changed = 0, apart = 0, published = 0;
  for (size_t i = 0; i < caches.size(); ++i) {
    const int64_t N = options.least_tokens << i;
    say("N = " + std::to_string(N));
    const Tensor before = slice(x, 1, 0, N), with = slice(x, 1, 0, N + 1), added = slice(x, 1, N, N + 1);
    KeyValueCache& cache = caches[i];
    const Heads at = made.layer.project(before);
    cache.append(at.k, at.v);
    const auto one_more = [&made, &cache, added, N] {
      cache.truncate(N);
      return made.next(added, cache);
    };
    const Tensor whole = made.all(with);
    changed = std::max(changed, largest_difference(slice(whole, 2, 0, N), made.all(before)) / largest(whole));
    apart = std::max(apart, largest_difference(slice(whole, 2, N, N + 1), one_more()) / largest(whole));
    const auto n = static_cast<double>(N);
    tokens.push_back(n);
    kept_work.push_back(counted_token_work([&] { one_more(); })), again_work.push_back(counted_token_work([&] { made.all(with); }));
    const double again = 3 * D * D * (n + 1) + D * (n + 1) * (n + 2);
    published = 3 * D * D * (n + 1) + 2 * D * (n + 1) * (n + 1);
    report.measured.push_back(
        equal_to("kept, N = " + std::to_string(N) + ": 3D² + 2D(N+1)", 3 * D * D + 2 * D * (n + 1), kept_work.back()));
    report.measured.push_back(equal_to("again, N = " + std::to_string(N) + ": 3D²(N+1) + D(N+1)(N+2)", again, again_work.back()));
    works.emplace_back([one_more] { one_more(); });
    works.emplace_back([&made, with] { made.all(with); });
  }
  say("times");
  const std::vector<double> seconds = processor_seconds(works, static_cast<int>(options.rounds));
  Table table{.title = "One more token", .columns = {"N", "kept: multiply-adds", "µs", "again: multiply-adds", "µs", "times quicker"}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    seconds_kept.push_back(1e6 * seconds[2 * i]), seconds_again.push_back(1e6 * seconds[2 * i + 1]);
    table.rows.push_back({tokens[i], kept_work[i], seconds_kept[i], again_work[i], seconds_again[i], seconds_again[i] / seconds_kept[i]});
  }
  const Power kept = fitted_power(tokens, seconds_kept), again = fitted_power(tokens, seconds_again);
  report.measured.push_back(at_most("change of earlier outputs, of the largest", 1e-5, changed));
  report.measured.push_back(at_most("kept against computed again: difference, of the largest", 1e-5, apart));
  report.measured.push_back(at_most("kept: exponent of time in N", 1.3, kept.exponent));
  report.measured.push_back(equal_to("computed again: exponent of time in N, as of its multiply-adds",
                                     fitted_power(tokens, again_work).exponent, again.exponent, 0.3));
  report.measured.push_back(
      contradicts("multiply-adds at the largest N: a map of (N+1)² and all outputs again", published, kept_work.back()));
  report.tables.push_back(std::move(table));
  report.figures.push_back(
      figure("Time of one more token",
             "Fitted: N to the " + number_text(kept.exponent) + " kept, to the " + number_text(again.exponent) + " again.",
             Plot{.body = Lines{.across = {"tokens N", true},
                                .up = {"microseconds", true},
                                .series = {{"all computed again", tokens, seconds_again, Mark::both},
                                           {"keys and values kept", tokens, seconds_kept, Mark::both}}}}));
  report.figures.push_back(growing_causal_map(made, x));
  return report;
}

}  // namespace

Experiment new_token() {
  return {
      .number = "L16",
      .name = "new-token",
      .topic = Topic::cost,
      .title = "One more token under a causal mask",
      .claim = "Under a causal mask a new token costs one projection, $N+1$ scores and one weighted sum; earlier outputs do not change.",
      .formula = R"(3 D^2 + 2 D (N + 1) \quad \mathrm{against} \quad 3 D^2 (N + 1) + D (N + 1)(N + 2))",
      .published = "The map grows to $(N+1) \\times (N+1)$ and all outputs are calculated again.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_new_token, run_new_token)};
}

}  // namespace heed::lab
