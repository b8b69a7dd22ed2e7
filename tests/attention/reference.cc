// The terms, and attention itself, in double.
#include "tests/attention/reference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heed::test {

static double masked(bool keep, double s) { return keep ? s : -INFINITY; }

std::vector<Subject> every_term(const Sizes& z) {
  const auto learned = [](Tensor x) { return x.require_grad(); };
  const int64_t reach = std::max<int64_t>(1, z.M / 3), width = std::max<int64_t>(1, z.M / 4);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < z.B; ++b) lengths.push_back(b % 2 == 0 ? (z.M + 1) / 2 : z.M);
  const Tensor slopes = positive_input({z.H}, 5), alpha = scale(positive_input({z.H}, 6), 0.02f);
  return {
      {"causal", Causal{z.M - z.N},
       [=](const Many&, double s, int64_t, int64_t, int64_t i, int64_t j) { return masked(j <= i + z.M - z.N, s); }},
      {"window", Window{z.M / 4, 2, 1},
       [=](const Many&, double s, int64_t, int64_t, int64_t i, int64_t j) {
         return masked((j >= i - z.M / 4 && j <= i + 2) || i < 1 || j < 1, s);
       }},
      {"chunks", Chunks{7, 3},
       [](const Many&, double s, int64_t, int64_t, int64_t i, int64_t j) { return masked((i + 3) / 7 == (j + 3) / 7, s); }},
      {"dilated", Dilated{3}, [](const Many&, double s, int64_t, int64_t, int64_t i, int64_t j) { return masked((j - i) % 3 == 0, s); }},
      {"lengths", KeyLengths{Tensor::from(lengths, {z.B})},
       [=](const Many&, double s, int64_t b, int64_t, int64_t, int64_t j) { return masked(j < lengths[static_cast<size_t>(b)], s); }},
      {"bias", Bias{learned(normal_input({1, z.H, z.N, z.M}, 7))},
       [=](const Many& p, double s, int64_t, int64_t h, int64_t i, int64_t j) { return s + p[0][(h * z.N + i) * z.M + j]; }},
      {"column bias", Bias{learned(normal_input({z.B, 1, 1, z.M}, 8))},
       [=](const Many& p, double s, int64_t b, int64_t, int64_t, int64_t j) { return s + p[0][b * z.M + j]; }},
      {"relative", RelativeBias{learned(normal_input({z.H, 2 * reach + 1}, 9))},
       [=](const Many& p, double s, int64_t, int64_t h, int64_t i, int64_t j) {
         return s + p[0][h * (2 * reach + 1) + std::clamp<int64_t>(j - i, -reach, reach) + reach];
       }},
      {"alibi", Alibi{learned(scale(slopes, 0.1f))},
       [](const Many& p, double s, int64_t, int64_t h, int64_t i, int64_t j) {
         return s - p[0][h] * static_cast<double>(std::abs(i - j));
       }},
      {"gaussian", Gaussian2d{learned(alpha), learned(normal_input({z.H, 2}, 10)), width},
       [=](const Many& p, double s, int64_t, int64_t h, int64_t i, int64_t j) {
         const double down = static_cast<double>(i / width - j / width) - p[1][2 * h];
         const double along = static_cast<double>(i % width - j % width) - p[1][2 * h + 1];
         return s - p[0][h] * (down * down + along * along);
       }}};
}

Expected reference(const Sizes& z, double beta, const std::vector<Subject>& terms, const Many& x, const Doubles& g) {
  const Doubles &q = x[0], &k = x[1], &v = x[2];
  Expected e{Doubles({z.B, z.H, z.N, z.E}), Doubles(q.shape), Doubles(k.shape), Doubles(v.shape), Doubles({z.B, z.H, z.N, z.M}), {}};
  std::vector<Many> parameters;
  for (const Subject& term : terms) {
    parameters.emplace_back();
    e.parameters.emplace_back();
    for (const Tensor& p : parameters_of(term.term)) {
      parameters.back().emplace_back(p);
      e.parameters.back().emplace_back(p.shape());
    }
  }
  for (int64_t b = 0; b < z.B; ++b)
    for (int64_t h = 0; h < z.H; ++h)
      for (int64_t i = 0; i < z.N; ++i) {
        const int64_t qi = ((b * z.H + h) * z.N + i) * z.D, oi = ((b * z.H + h) * z.N + i) * z.E, head = b * z.G + h / (z.H / z.G);
        std::vector<double> s(static_cast<size_t>(z.M)), p(s.size());
        double top = -INFINITY, total = 0;
        for (int64_t j = 0; j < z.M; ++j) {
          double& value = s[static_cast<size_t>(j)];
          for (int64_t d = 0; d < z.D; ++d) value += beta * q[qi + d] * k[(head * z.M + j) * z.D + d];
          for (size_t t = 0; t < terms.size(); ++t) value = terms[t].score(parameters[t], value, b, h, i, j);
          top = std::max(top, value);
        }
        if (top == -INFINITY) continue;
        for (size_t j = 0; j < s.size(); ++j) total += p[j] = std::exp(s[j] - top);
        double shared = 0;
        std::vector<double> dp(s.size());
        for (int64_t j = 0; j < z.M; ++j) {
          double& weight = p[static_cast<size_t>(j)];
          weight /= total;
          e.weights[((b * z.H + h) * z.N + i) * z.M + j] = weight;
          for (int64_t c = 0; c < z.E; ++c) {
            const int64_t vj = (head * z.M + j) * z.E + c;
            e.out[oi + c] += weight * v[vj];
            e.dv[vj] += weight * g[oi + c];
            dp[static_cast<size_t>(j)] += g[oi + c] * v[vj];
          }
          shared += weight * dp[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < z.M; ++j) {
          const double ds = p[static_cast<size_t>(j)] * (dp[static_cast<size_t>(j)] - shared);
          if (ds == 0) continue;
          for (int64_t d = 0; d < z.D; ++d) {
            e.dq[qi + d] += beta * ds * k[(head * z.M + j) * z.D + d];
            e.dk[(head * z.M + j) * z.D + d] += beta * ds * q[qi + d];
          }
          // What a parameter does to this score, by central differences; most do nothing.
          for (size_t t = 0; t < terms.size(); ++t)
            for (size_t which = 0; which < parameters[t].size(); ++which)
              for (double& value : parameters[t][which].values) {
                const double before = value, step = 1e-4;
                value = before + step;
                const double above = terms[t].score(parameters[t], 0, b, h, i, j);
                value = before - step;
                const double below = terms[t].score(parameters[t], 0, b, h, i, j);
                value = before;
                e.parameters[t][which][&value - parameters[t][which].values.data()] += ds * (above - below) / (2 * step);
              }
        }
      }
  return e;
}

void expect_near(const std::string& what, const Tensor& got, const Doubles& expected, double tolerance) {
  ASSERT_EQ(got.shape(), expected.shape) << what;
  const Doubles values(got);
  double largest = 0;
  for (double x : expected.values) largest = std::max(largest, std::abs(x));
  for (int64_t i = 0; i < values.size(); ++i)
    ASSERT_LE(std::abs(values[i] - expected[i]), tolerance * largest + 1e-12)
        << what << " " << i << ": " << values[i] << ", expected " << expected[i];
}

}  // namespace heed::test
