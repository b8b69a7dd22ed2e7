// L16: the cost of one more token under a causal mask, with a KV cache.
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
  settings.add("least_tokens", options.least_tokens, "the smallest N, the number of earlier tokens", {.least = 4, .most = 65536});
  settings.add("lengths", options.lengths, "number of lengths, each twice the previous one", {.least = 2, .most = 10});
  settings.add("rounds", options.rounds, "timing rounds", {.least = 3, .most = 1000});
  settings.add("seed", options.seed, "of weights and tokens");
}

// A layer without its output projection, which is not counted.
struct DecodeLayer {
  Params params;
  MultiHeadAttention layer;

  explicit DecodeLayer(const NewTokenOptions& options)
      : params(options.seed, {}, Weights::packed),
        layer(make_multi_head(Scope(params, initializer::original(options.width)), {.width = options.width, .heads = options.heads})) {}

  // Recomputes all tokens. x: (1, N, D) -> (1, H, N, D / H)
  Tensor all(const Tensor& x) const { return layer.attend(layer.project(x), {.terms = {Causal{}}}); }
  // One token after those of the cache. x: (1, 1, D) -> (1, H, 1, D / H)
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

// The map of the first n tokens, padded to the final size.
Figure growing_causal_map(const DecodeLayer& decoder, const Tensor& x) {
  constexpr int64_t most = 12;
  Figure film{.title = "The map when a token is added",
              .caption = "A new token adds one row with as many weights as there are tokens. The rows above do not change.",
              .parameter = "tokens"};
  for (int64_t n = 3; n <= std::min<int64_t>(most, x.size(1)); ++n) {
    const Heads at = decoder.layer.project(slice(x, 1, 0, n));
    const Tensor map = reshape(attention_probabilities(at.q, at.k, {.terms = {Causal{}}}, {0}), {n, n});
    const std::vector<std::array<int64_t, 2>> around{{0, most - n}, {0, most - n}};
    HeatMap drawn = heat_map(pad(map, around), "query", "key");
    drawn.least = 0, drawn.most = 1;
    film.frames.push_back({std::to_string(n), {Plot{.body = std::move(drawn)}}});
  }
  return film;
}

Report run_new_token(const NewTokenOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.width % options.heads == 0, "new-token: a width of ", options.width, " in ", options.heads,
                    " heads, expected a multiple");
  const DecodeLayer decoder(options);
  const auto D = static_cast<double>(options.width);
  const int64_t longest = options.least_tokens << (options.lengths - 1);
  Rng rng(options.seed);
  const Tensor x = random_normal({1, longest + 1, options.width}, 0, 1, rng, kCpu);
  Report report;
  report.statement =
      "A new token costs one projection, 3D², one row of N+1 scores and one weighted sum of N+1 values. Earlier outputs do not change, "
      "because no earlier query sees the new key. With a KV cache the outputs are the same, and the time per token grows at most as N, not "
      "as N².";
  std::vector<double> tokens, cached_work, recomputed_work, seconds_cached, seconds_recomputed;
  std::vector<KeyValueCache> caches(static_cast<size_t>(options.lengths));
  std::vector<std::function<void()>> functions;
  double changed = 0, apart = 0, published = 0;
  for (size_t i = 0; i < caches.size(); ++i) {
    const int64_t N = options.least_tokens << i;
    progress("N = " + std::to_string(N));
    const Tensor before = slice(x, 1, 0, N), with = slice(x, 1, 0, N + 1), added = slice(x, 1, N, N + 1);
    KeyValueCache& cache = caches[i];
    const Heads at = decoder.layer.project(before);
    cache.append(at.k, at.v);
    const auto one_more = [&decoder, &cache, added, N] {
      cache.truncate(N);
      return decoder.next(added, cache);
    };
    const Tensor whole = decoder.all(with);
    changed = std::max(changed, largest_difference(slice(whole, 2, 0, N), decoder.all(before)) / largest(whole));
    apart = std::max(apart, largest_difference(slice(whole, 2, N, N + 1), one_more()) / largest(whole));
    const auto n = static_cast<double>(N);
    tokens.push_back(n);
    cached_work.push_back(counted_token_work([&] { one_more(); })),
        recomputed_work.push_back(counted_token_work([&] { decoder.all(with); }));
    const double recomputed = 3 * D * D * (n + 1) + D * (n + 1) * (n + 2);
    published = 3 * D * D * (n + 1) + 2 * D * (n + 1) * (n + 1);
    report.measured.push_back(
        equal_to("KV cache, N = " + std::to_string(N) + ": 3D² + 2D(N+1)", 3 * D * D + 2 * D * (n + 1), cached_work.back()));
    report.measured.push_back(
        equal_to("recomputed, N = " + std::to_string(N) + ": 3D²(N+1) + D(N+1)(N+2)", recomputed, recomputed_work.back()));
    functions.emplace_back([one_more] { one_more(); });
    functions.emplace_back([&decoder, with] { decoder.all(with); });
  }
  progress("times");
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  Table table{.title = "One more token", .columns = {"N", "KV cache: multiply-adds", "µs", "recomputed: multiply-adds", "µs", "speedup"}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    seconds_cached.push_back(1e6 * seconds[2 * i]), seconds_recomputed.push_back(1e6 * seconds[2 * i + 1]);
    table.rows.push_back({tokens[i], cached_work[i], seconds_cached[i], recomputed_work[i], seconds_recomputed[i],
                          seconds_recomputed[i] / seconds_cached[i]});
  }
  const Power cached = fitted_power(tokens, seconds_cached), recomputed = fitted_power(tokens, seconds_recomputed);
  report.measured.push_back(at_most("change of earlier outputs, relative to the largest", 1e-5, changed));
  report.measured.push_back(at_most("KV cache against recomputed: difference, relative to the largest", 1e-5, apart));
  report.measured.push_back(by_clock(at_most("KV cache: exponent of time in N", 1.3, cached.exponent)));
  report.measured.push_back(by_clock(equal_to("recomputed: exponent of time in N, as that of the multiply-adds",
                                              fitted_power(tokens, recomputed_work).exponent, recomputed.exponent, 0.3)));
  report.measured.push_back(
      contradicts("multiply-adds at the largest N: a map of (N+1)² and all outputs recomputed", published, cached_work.back()));
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure(
      "Time of one more token",
      "Fitted: N to the " + number_text(cached.exponent) + " with a KV cache, to the " + number_text(recomputed.exponent) + " recomputed.",
      Plot{.body = Lines{
               .across = {"tokens N", true},
               .up = {"microseconds", true},
               .series = {{"recomputed", tokens, seconds_recomputed, Mark::both}, {"KV cache", tokens, seconds_cached, Mark::both}}}}));
  report.figures.push_back(growing_causal_map(decoder, x));
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
      .published = "The map grows to $(N+1) \\times (N+1)$ and all outputs are computed again.",
      .setup =
          "A layer with a causal mask computes the output of one more token after $N$ others: once from a KV cache, once by recomputing "
          "everything. Outputs are compared, multiply-adds are counted, and processor time is measured.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_new_token, run_new_token)};
}

}  // namespace heed::lab
