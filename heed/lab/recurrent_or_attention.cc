// L41: recurrent layers against attention: path length between two tokens, steps in sequence, memory, and the cost of padding.
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/core/memory.h"
#include "heed/core/parallel.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct PathOptions {
  int64_t width = 16, most_distance = 64, tokens = 512, batch = 32;
  float radius = 0.9f;
  uint64_t seed = 1;
};

void declare_paths(Settings& settings, PathOptions& options, Size size) {
  if (size == Size::full) options.most_distance = 256, options.tokens = 2048;
  settings.add("width", options.width, "of tokens and states", {.least = 2, .most = 256});
  settings.add("most_distance", options.most_distance, "the largest distance between two tokens", {.least = 8, .most = 1024});
  settings.add("tokens", options.tokens, "for the memory of the map, and the longest sequence of the batch", {.least = 64, .most = 8192});
  settings.add("batch", options.batch, "sequences of random length, for the cost of padding", {.least = 2, .most = 1024});
  settings.add("radius", options.radius, "factor of the orthogonal recurrent matrix: 1 keeps the length of a state",
               {.least = 0.1, .most = 1.2});
  settings.add("seed", options.seed, "of weights, tokens and lengths");
}

// A random orthogonal matrix, by Gram and Schmidt, times a factor.
Tensor orthogonal_matrix(int64_t D, float factor, Rng& rng) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < D; ++i) {
    std::vector<double> row = values_of(random_normal({D}, 0, 1, rng, kCpu));
    for (int pass = 0; pass < 2; ++pass)
      for (const std::vector<double>& before : rows) {
        double dot = 0;
        for (size_t c = 0; c < row.size(); ++c) dot += row[c] * before[c];
        for (size_t c = 0; c < row.size(); ++c) row[c] -= dot * before[c];
      }
    double square = 0;
    for (const double each : row) square += each * each;
    for (double& each : row) each /= std::sqrt(square);
    rows.push_back(std::move(row));
  }
  std::vector<float> out;
  for (const std::vector<double>& row : rows)
    for (const double each : row) out.push_back(static_cast<float>(factor * each));
  return Tensor::from(out, {D, D}, kCpu);
}

// Length of the gradient of (direction . last output) with respect to the first token, and the number of layers on the way.
struct Influence {
  double gradient;
  int64_t path;  // applications of a layer between the two tokens
};

Influence through_recurrence(const Tensor& x, const Tensor& recurrent, const Tensor& direction) {  // h_t = R h_{t-1} + x_t
  Tensor tokens = x.detach();
  tokens.require_grad();
  Tensor state = slice(tokens, 0, 0, 1);
  int64_t path = 0;
  for (int64_t t = 1; t < x.size(0); ++t, ++path) state = linear(state, recurrent) + slice(tokens, 0, t, t + 1);
  backward(sum(state * direction));
  const Tensor first = slice(tokens.grad(), 0, 0, 1);
  return {std::sqrt(static_cast<double>(sum(first * first).item())), path};
}

// Local attention, each layer reaching so far to either side, as many layers as it takes; reach 0: all tokens.
Influence through_attention(const Tensor& x, int64_t reach, const Tensor& direction) {
  const int64_t N = x.size(0), D = x.size(1);
  for (int64_t layers = 1;; ++layers) {
    Tensor tokens = x.detach();
    tokens.require_grad();
    Tensor y = reshape(tokens, {1, 1, N, D});
    std::vector<Term> terms;
    if (reach > 0) terms.emplace_back(Window{.before = reach, .after = reach});
    for (int64_t layer = 0; layer < layers; ++layer) y = attention(y, y, y, {.beta = 0.0f, .terms = terms});
    backward(sum(reshape(slice(y, 2, N - 1, N), {1, D}) * direction));
    const Tensor first = slice(tokens.grad(), 0, 0, 1);
    const double most = largest(first);  // squares of 3^-64 would be 0
    if (most > 0 || layers > N)
      return {most * std::sqrt(static_cast<double>(sum(first * first * static_cast<float>(1 / (most * most))).item())), layers};
  }
}

// On one thread: each has scratch memory of its own.
double peak_bytes(const std::function<void()>& function) {
  const StayInThread alone;
  const int64_t before = memory_use(kCpu).in_use;
  reset_peak_memory(kCpu);
  function();
  return static_cast<double>(memory_use(kCpu).peak - before);
}

void measure_memory(Report& report, const PathOptions& options, Rng& rng) {
  std::vector<double> lengths, map, fused;
  for (int64_t N = options.tokens / 4; N <= options.tokens; N *= 2) {
    const auto draw = [&] { return random_normal({1, 1, N, options.width}, 0, 1, rng, kCpu); };
    const Tensor q = draw(), k = draw(), v = draw();
    lengths.push_back(static_cast<double>(N));
    map.push_back(peak_bytes([&] { matmul(softmax(matmul(q, transpose(k, 2, 3))), v); }));
    fused.push_back(peak_bytes([&] { attention(q, k, v); }));
  }
  report.measured.push_back(
      equal_to("memory of attention with a stored map: exponent in tokens", 2, fitted_power(lengths, map).exponent, 0.15));
  report.measured.push_back(at_most("memory of fused attention: exponent in tokens", 1.15, fitted_power(lengths, fused).exponent));
  report.figures.push_back(
      figure("Memory", "Peak bytes of one head, beyond its inputs.",
             Plot{.body = Lines{.across = {"tokens", true},
                                .up = {"bytes", true},
                                .series = {{"map stored", lengths, map, Mark::both}, {"fused", lengths, fused, Mark::both}}}}));
}

// What padding costs in a batch of random lengths: token work grows with the longest length, pairs with its square.
void measure_padding(Report& report, const PathOptions& options, Rng& rng) {
  const int64_t B = options.batch, N = options.tokens / 8, D = options.width;
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < B; ++b) lengths.push_back(1 + random_permutation(N, rng)[0]);
  lengths[0] = N;
  double tokens = 0, pairs = 0;
  for (const int64_t length : lengths) tokens += static_cast<double>(length), pairs += static_cast<double>(length * length);
  const Tensor x = random_normal({B, 1, N, D}, 0, 1, rng, kCpu), weight = random_normal({D, D}, 0, 1, rng, kCpu);
  const KeyLengths mask{Tensor::from(lengths, {B}, kCpu)};
  double distance = 0, alone_work = 0, padded_work = 0, alone_linear = 0, padded_linear = 0;
  const auto counted = [](double& into, const std::function<Tensor()>& function) {
    const WorkCount count;
    const Tensor out = function();
    into += static_cast<double>(count.multiply_adds());
    return out;
  };
  counted(padded_linear, [&] { return linear(x, weight); });
  const Tensor padded = counted(padded_work, [&] { return attention(x, x, x); });
  const Tensor masked = attention(x, x, x, {.terms = {mask}});
  for (int64_t b = 0; b < B; ++b) {
    const int64_t n = lengths[static_cast<size_t>(b)];
    const Tensor own = contiguous(slice(slice(x, 0, b, b + 1), 2, 0, n));
    counted(alone_linear, [&] { return linear(own, weight); });
    const Tensor alone = counted(alone_work, [&] { return attention(own, own, own); });
    distance = std::max(distance, largest_difference(alone, contiguous(slice(slice(masked, 0, b, b + 1), 2, 0, n))));
  }
  const auto all = static_cast<double>(B * N);
  report.measured.push_back(at_most("padded and masked: distance from each sequence alone", 1e-5, distance));
  report.measured.push_back(
      close_to("padding: multiply-adds of linear layers, B N / Σ n", all / tokens, padded_linear / alone_linear, 1e-9));
  report.measured.push_back(
      close_to("padding: multiply-adds of attention, B N² / Σ n²", all * static_cast<double>(N) / pairs, padded_work / alone_work, 1e-9));
  report.tables.push_back({.title = "A batch of " + std::to_string(B) + " sequences of 1 to " + std::to_string(N) + " tokens",
                           .columns = {"", "alone", "padded", "ratio"},
                           .rows = {{"tokens", tokens, all, all / tokens},
                                    {"multiply-adds of a linear layer", alone_linear, padded_linear, padded_linear / alone_linear},
                                    {"multiply-adds of attention", alone_work, padded_work, padded_work / alone_work}}});
}

Report run_paths(const PathOptions& options, const ProgressCallback& progress) {
  const int64_t D = options.width;
  Rng rng(options.seed);
  const Tensor recurrent = orthogonal_matrix(D, options.radius, rng);
  const Tensor direction = random_normal({1, D}, 0, 1, rng, kCpu);
  const double size = std::sqrt(static_cast<double>(sum(direction * direction).item()));
  std::vector<double> distances, by_recurrence, by_window, by_all, decay, kept, predicted;
  for (int64_t n = 4; n <= options.most_distance; n *= 2) {
    progress("distance " + std::to_string(n));
    const Tensor x = random_normal({n + 1, D}, 0, 1, rng, kCpu);
    const Influence chain = through_recurrence(x, recurrent, direction),
                    window = through_attention(x, std::max<int64_t>(1, n / 64), direction), all = through_attention(x, 0, direction);
    const auto distance = static_cast<double>(n);
    distances.push_back(distance), by_recurrence.push_back(static_cast<double>(chain.path));
    by_window.push_back(static_cast<double>(window.path)), by_all.push_back(static_cast<double>(all.path));
    decay.push_back(chain.gradient / size), kept.push_back(all.gradient / size), predicted.push_back(std::pow(options.radius, distance));
  }
  double off = 0, share = 0;
  for (size_t i = 0; i < distances.size(); ++i) {
    if (predicted[i] > 1e-30 && predicted[i] < 1e30)  // otherwise the gradient leaves the range of 32-bit floats
      off = std::max(off, std::abs(decay[i] / predicted[i] - 1));
    share = std::max(share, std::abs(kept[i] * (distances[i] + 1) - 1));
  }
  Report report;
  const double last = distances.back();
  const int64_t reach = std::max<int64_t>(1, static_cast<int64_t>(last) / 64);  // further layers would make the gradient underflow
  report.statement =
      "Between two tokens at distance n a recurrent layer takes n steps, one after the other; attention takes one. A signal that is "
      "multiplied by " +
      setting_text(options.radius) + " per step keeps " + number_text(predicted.back()) + " of its gradient over " + number_text(last) +
      " tokens; uniform attention passes 1/(n + 1) of it to every token, near or far. The price is a map of n² weights, which a fused "
      "kernel computes but does not store. Both take sequences of any length; in a batch, padding to the longest costs both, and costs "
      "attention more, because its work grows with the square of the length.";
  report.measured = {
      equal_to("recurrent: path over the largest distance", last, by_recurrence.back()),
      equal_to("attention to " + std::to_string(reach) + " on each side: layers over the largest distance",
               std::ceil(last / static_cast<double>(reach)), by_window.back()),
      equal_to("attention to all: layers over the largest distance", 1, by_all.back()),
      at_most("recurrent: distance of the gradient from radius^n, relative", 1e-3, off),
      at_most("attention: distance of the gradient from 1/(n + 1), relative", 1e-4, share),
  };
  measure_memory(report, options, rng);
  measure_padding(report, options, rng);
  report.figures.insert(
      report.figures.begin(),
      figure("Path length and gradient", "Left: layers between two tokens. Right: the gradient that reaches the far token.",
             {Plot{"path length", Lines{.across = {"distance", true},
                                        .up = {"steps", true},
                                        .series = {{"recurrent", distances, by_recurrence, Mark::both},
                                                   {"local attention", distances, by_window, Mark::dashed},
                                                   {"attention", distances, by_all, Mark::both}}}},
              Plot{"gradient", Lines{.across = {"distance", true},
                                     .up = {"", true},
                                     .series = {{"recurrent", distances, decay, Mark::both},
                                                {"radius^n", distances, predicted, Mark::dashed},
                                                {"attention", distances, kept, Mark::both}}}}}));
  return report;
}

}  // namespace

Experiment recurrent_or_attention() {
  return {.number = "L41",
          .name = "recurrent-or-attention",
          .topic = Topic::cost,
          .title = "Recurrence and attention: path, steps and memory",
          .claim =
              "Attention connects any two tokens in one step, a recurrent layer in as many as they are apart; the price is a map of $n^2$ "
              "weights.",
          .formula = R"(\text{recurrent: path } n, \; n \text{ sequential steps}, \; \mathcal{O}(n D^2); \quad )"
                     R"(\text{attention: path } 1, \; 1 \text{ step}, \; \mathcal{O}(n^2 D))",
          .setup =
              "Gradients are propagated from the last token to the first, through a recurrent layer and through attention, over growing "
              "distances. Sequential steps, multiply-adds and memory are counted.",
          .prepare = prepared(declare_paths, run_paths)};
}

}  // namespace heed::lab
