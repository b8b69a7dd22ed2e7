// L44: the distribution of an output whose key has Gaussian noise: mean and covariance to second order.
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct NoiseSpreadOptions {
  int64_t keys = 12, width = 16, key = -1, samples = 20000;
  float beta = 0.25f, noise = 0.1f;
  uint64_t seed = 1;
};

void declare_noise_spread(Settings& settings, NoiseSpreadOptions& options, Size size) {
  if (size == Size::full) options.samples = 400000;
  settings.add("keys", options.keys, "number of keys and values", {.least = 2, .most = 256});
  settings.add("width", options.width, "of queries, keys and values", {.least = 1, .most = 256});
  settings.add("key", options.key, "which key gets the noise, from 0; -1: the one with the largest weight", {.least = -1, .most = 255});
  settings.add("samples", options.samples, "pairs of opposite noises", {.least = 1000, .most = 1e7});
  settings.add("beta", options.beta, "inverse temperature", {.least = 0.01, .most = 2});
  settings.add("noise", options.noise, "standard deviation of the score that the noise causes", {.least = 0.01, .most = 3});
  settings.add("seed", options.seed, "of tokens and noises");
}

// One query. The noise changes its score with key j by s = beta q.e, which is Gaussian with deviation tau = beta sigma |q|.
struct NoisySetup {
  Tensor q, k, v;  // (1, D), (M, D), (M, D)
  int64_t j;
  float beta;
  std::vector<double> h = {}, d = {};  // the output, and v_j - h
  double a = 0, length = 0;            // weight of the key; |q|

  void prepare() {
    const Tensor map = attention_probabilities(four(q), four(k), {.beta = beta});
    if (j < 0) j = argmax(reshape(map, {k.size(0)})).item<int64_t>();
    a = values_of(map)[static_cast<size_t>(j)];
    h = values_of(attention(four(q), four(k), four(v), {.beta = beta}));
    const std::vector<double> own = values_of(slice(v, 0, j, j + 1));
    for (size_t c = 0; c < h.size(); ++c) d.push_back(own[c] - h[c]);
    length = std::sqrt(static_cast<double>(sum(q * q).item()));
  }
  static Tensor four(const Tensor& x) { return reshape(x, {1, 1, x.size(0), x.size(1)}); }
  // Outputs for noises e: (S, D) on the key. -> S rows of D
  std::vector<double> outputs(const Tensor& e) const {
    const int64_t S = e.size(0), M = k.size(0), D = k.size(1);
    std::vector<float> chosen(static_cast<size_t>(M));
    chosen[static_cast<size_t>(j)] = 1;
    const Tensor keys = reshape(k, {1, M, D}) + Tensor::from(chosen, {1, M, 1}, kCpu) * reshape(e, {S, 1, D});
    return values_of(attention(expand(reshape(q, {1, 1, 1, D}), {S, 1, 1, D}), reshape(keys, {S, 1, M, D}),
                               contiguous(expand(reshape(v, {1, 1, M, D}), {S, 1, M, D})), {.beta = beta}));
  }
};

// Moments of the change of the output, over noises in opposite pairs: the first order cancels in the mean.
struct ChangeMoments {
  std::vector<double> mean;         // (D)
  double along = 0, beside = 0;     // mean square of the change along d and at right angles to it
  std::vector<double> shares = {};  // the change along d, in units of |d|
};

ChangeMoments change_moments(const NoisySetup& setup, double tau, int64_t samples, uint64_t seed) {
  const int64_t D = setup.k.size(1), chunk = 2000;
  const double sigma = tau / (setup.beta * setup.length);
  double dd = 0;
  for (const double each : setup.d) dd += each * each;
  ChangeMoments out{.mean = std::vector<double>(static_cast<size_t>(D))};
  Rng rng(seed);
  for (int64_t done = 0; done < samples; done += chunk) {
    const int64_t S = std::min(chunk, samples - done);
    const Tensor e = random_normal({S, D}, 0, static_cast<float>(sigma), rng, kCpu);
    for (const float sign : {1.0f, -1.0f}) {
      const std::vector<double> h = setup.outputs(e * sign);
      for (int64_t s = 0; s < S; ++s) {
        double dot = 0, square = 0;
        for (size_t c = 0; c < static_cast<size_t>(D); ++c) {
          const double change = h[static_cast<size_t>(s * D) + c] - setup.h[c];
          out.mean[c] += change / static_cast<double>(2 * samples);
          dot += change * setup.d[c], square += change * change;
        }
        out.along += dot * dot / dd / static_cast<double>(2 * samples);
        out.beside += std::max(square - dot * dot / dd, 0.0) / static_cast<double>(2 * samples);
        out.shares.push_back(dot / dd);
      }
    }
  }
  return out;
}

constexpr double kSecondOrder = 0.5;  // the largest noise that the second order describes

// Mean and mean square of the change along v - h, in units of |v - h|: the weight is a logistic curve of the score, and the score Gaussian.
struct ExactMoments {
  double mean = 0, square = 0;

  ExactMoments(double a, double tau) {
    double all = 0;
    for (const double z : steps(-8, 8, 4001)) {
      const double p = std::exp(-z * z / 2), odds = a / (1 - a) * std::exp(tau * z), change = (odds / (1 + odds) - a) / (1 - a);
      all += p, mean += p * change, square += p * change * change;
    }
    mean /= all, square /= all;
  }
};

double shift_along(const ChangeMoments& moments, const std::vector<double>& d) {
  double dot = 0, dd = 0;
  for (size_t c = 0; c < d.size(); ++c) dot += moments.mean[c] * d[c], dd += d[c] * d[c];
  return dot / dd;
}

Plot histogram(const NoisySetup& setup, const ChangeMoments& moments, double tau) {
  const double deviation = tau * setup.a, low = -setup.a / (1 - setup.a) * 1.1, high = 1.1;
  constexpr int kBins = 60;
  std::vector<double> centres, density(kBins), normal;
  const double width = (high - low) / kBins;
  for (int i = 0; i < kBins; ++i) {
    centres.push_back(low + (i + 0.5) * width);
    const double z = (centres.back() - shift_along(moments, setup.d)) / deviation;
    normal.push_back(std::exp(-z * z / 2) / (deviation * std::sqrt(2 * M_PI)));
  }
  for (const double share : moments.shares)
    density[static_cast<size_t>(std::clamp(static_cast<int>((share - low) / width), 0, kBins - 1))] +=
        1 / (width * static_cast<double>(moments.shares.size()));
  return {.body =
              Lines{.across = {"change along v − h, in units of |v − h|"},
                    .up = {"density", false, 0.0},
                    .series = {{"measured", centres, density, Mark::both}, {"Gaussian of first order", centres, normal, Mark::dashed}}}};
}

Report run_noise_spread(const NoiseSpreadOptions& options, const ProgressCallback& progress) {
  const NoGrad no_grad;
  check<UsageError>(options.key < options.keys, "lab: key is ", options.key, ", expected one of the ", options.keys, " keys, from 0");
  Rng rng(options.seed);
  const auto draw = [&](int64_t rows) { return random_normal({rows, options.width}, 0, 1, rng, kCpu); };
  NoisySetup setup{draw(1), draw(options.keys), draw(options.keys), options.key, options.beta};
  setup.prepare();
  const double a = setup.a, tau = options.noise;

  std::vector<double> taus = powers(0.02, 2, 9), shifts, shift_formula, variances, variance_formula;
  for (const double each : taus) {
    progress("noise " + number_text(each));
    const ChangeMoments moments = change_moments(setup, each, std::min<int64_t>(options.samples, 10000), options.seed + 1);
    shifts.push_back(std::abs(shift_along(moments, setup.d))), shift_formula.push_back(std::abs(each * each / 2 * a * (1 - 2 * a)));
    variances.push_back(moments.along), variance_formula.push_back(0);
    for (const double part : setup.d) variance_formula.back() += each * each * a * a * part * part;
  }
  const ChangeMoments moments = change_moments(setup, tau, options.samples, options.seed + 1);
  double dd = 0;
  for (const double each : setup.d) dd += each * each;
  Report report;
  report.statement =
      "Gaussian noise on a key moves the output along $v_j - h$ only: its covariance has rank one, $\\tau^2 a^2 (v_j - h)(v_j - h)^T$ with "
      "$\\tau = \\beta \\sigma |q|$. The mean moves too, at second order, by $\\frac{\\tau^2}{2} a (1 - 2a)(v_j - h)$: " +
      std::string(a < 0.5 ? "towards the value of the noisy key while its weight is below 1/2"
                          : "away from its value, as its weight is above 1/2") +
      " (here a = " + number_text(a) + "). At τ = " + setting_text(tau) + " the output's deviation is " +
      number_text(std::sqrt(moments.along / dd)) + " and its mean shift " + number_text(shift_along(moments, setup.d)) + " of $|v_j - h|$.";
  // The next terms of both series are smaller by tau^2, with factors of order 1.
  const double sampling = 8 / std::sqrt(static_cast<double>(options.samples)), next = std::ceil(100 * (2 * tau * tau + sampling)) / 100;
  const double shift = shift_along(moments, setup.d), shift_expected = tau * tau / 2 * a * (1 - 2 * a),
               variance_expected = tau * tau * a * a * dd;
  const bool shifts_at_second_order = std::abs(1 - 2 * a) >= 0.1;  // otherwise the fourth order is as large
  if (tau <= kSecondOrder) {
    report.measured = {shifts_at_second_order ? close_to("mean shift along v − h, τ²/2 a (1 − 2a)", shift_expected, shift, next)
                                              : equal_to("mean shift along v − h, τ²/2 a (1 − 2a)", shift_expected, shift,
                                                         next * tau * tau / 2 * a * 0.1 + sampling * tau * tau / 2 * a),
                       close_to("variance along v − h, τ² a² |v − h|²", variance_expected, moments.along, next)};
  } else {
    const ExactMoments exact(a, tau);
    report.measured = {
        equal_to("mean shift along v − h, by integrating the weight over the noise", exact.mean, shift, std::sqrt(exact.square) * sampling),
        close_to("mean square along v − h, by integrating the weight over the noise", exact.square * dd, moments.along,
                 std::max(0.05, 2 * sampling))};
    report.statement += " The noise is too large for the second order, which predicts a deviation of " + number_text(tau * a) +
                        " and a shift of " + number_text(shift_expected) +
                        ". It is a good approximation up to about τ = " + setting_text(kSecondOrder) + ".";
  }
  report.measured.push_back(at_most("mean square at right angles to v − h, relative", 1e-6, moments.beside / moments.along));
  if (shifts_at_second_order)
    report.measured.push_back(equal_to("exponent of the mean shift in τ, 0.02 to 0.2", 2,
                                       fitted_power(std::span(taus).first(5), std::span(shifts).first(5)).exponent, 0.1));
  else
    report.statement += " With a weight this close to 1/2 the shift of second order almost vanishes.";
  report.measured.push_back(equal_to("exponent of the variance in τ, 0.02 to 0.2", 2,
                                     fitted_power(std::span(taus).first(5), std::span(variances).first(5)).exponent, 0.05));
  if (1 - a < 1e-3) {  // v - h is then as small as the rounding of h
    report.undecided = "The weight of the key is " + number_text(a) + ", " + number_text(1 - a) +
                       " below 1: the softmax is saturated, and the change of the output is lost in the rounding of 32-bit floats. A "
                       "smaller beta, or a key with a smaller weight, shows it.";
    report.measured = {at_least("weight of the key", 0.999, a)};
  }
  report.figures.push_back(
      figure("Mean shift and variance", "Second-order formulas are dashed; they hold while τ is below about 0.5.",
             {Plot{"mean shift / |v − h|",
                   Lines{.across = {"τ", true},
                         .up = {"", true},
                         .series = {{"measured", taus, shifts, Mark::both}, {"formula", taus, shift_formula, Mark::dashed}}}},
              Plot{"variance along v − h",
                   Lines{.across = {"τ", true},
                         .up = {"", true},
                         .series = {{"measured", taus, variances, Mark::both}, {"formula", taus, variance_formula, Mark::dashed}}}}}));
  Figure film{.title = "Distribution of the output",
              .caption =
                  "Change of the output along v − h. It is bounded by the key's value on one side and by the output without the key on "
                  "the other, so that large noise makes it skew.",
              .parameter = "τ"};
  for (const double each : {0.1, 0.3, 1.0, 2.0, 4.0})
    film.frames.push_back({setting_text(each), {histogram(setup, change_moments(setup, each, 4000, options.seed + 2), each)}});
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment noisy_key_distribution() {
  return {.number = "L44",
          .name = "noisy-key-distribution",
          .topic = Topic::temperature,
          .title = "Gaussian noise on a key: mean and covariance of the output",
          .claim = "Gaussian noise on key $j$ spreads the output along $v_j - h$ alone and, at second order, shifts its mean.",
          .formula = R"(\mathrm{E}[h'] - h = \frac{\tau^2}{2} a_j (1 - 2 a_j)(v_j - h) + \mathcal{O}(\tau^4), \quad )"
                     R"(\mathrm{Cov}[h'] = \tau^2 a_j^2 (v_j - h)(v_j - h)^T + \mathcal{O}(\tau^4), \quad \tau = \beta \sigma |q|)",
          .setup =
              "One key gets Gaussian noise of growing size, drawn many times. Mean and covariance of the output are measured and compared "
              "with their expansions to second order.",
          .prepare = prepared(declare_noise_spread, run_noise_spread)};
}

}  // namespace heed::lab
