// Attention in double.
#include "tests/attention/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"

namespace heed::test {

std::vector<Subject> every_term(const Sizes& z) {
  std::vector<Subject> all;
  const auto add = [&](std::vector<Subject> some) { all.insert(all.end(), some.begin(), some.end()); };
#define HEED_ADD_SUBJECTS(Name, kind) add(subjects<Name>(z));
  HEED_TERMS(HEED_ADD_SUBJECTS)
#undef HEED_ADD_SUBJECTS
  return all;
}

Expected reference(const Sizes& z, double beta, const std::vector<Subject>& terms, const Many& x, const Doubles& g,
                   const ReferenceKind& kind) {
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
  const auto through_terms = [&](double s, int64_t b, int64_t h, int64_t i, int64_t j) {
    for (size_t t = 0; t < terms.size(); ++t) s = terms[t].score(parameters[t], s, b, h, i, j);
    return s;
  };
  // The derivative of a score with respect to a number.
  const auto slope = [&](double& number, const std::function<double()>& score) {
    const double before = number, step = 1e-4;
    number = before + step;
    const double above = score();
    number = before - step;
    const double below = score();
    number = before;
    return (above - below) / (2 * step);
  };
  const bool drops = kind.factors.shape.rank() == 4;
  for (int64_t b = 0; b < z.B; ++b)
    for (int64_t h = 0; h < z.H; ++h)
      for (int64_t i = 0; i < z.N; ++i) {
        const int64_t qi = ((b * z.H + h) * z.N + i) * z.D, oi = ((b * z.H + h) * z.N + i) * z.E, head = b * z.G + h / (z.H / z.G);
        std::vector<double> content(static_cast<size_t>(z.M)), s(content.size()), soft(content.size()), dp(content.size());
        double top = -INFINITY, total = 0, ties = 0, shared = 0;
        for (size_t j = 0; j < s.size(); ++j) {
          for (int64_t d = 0; d < z.D; ++d) content[j] += beta * q[qi + d] * k[(head * z.M + static_cast<int64_t>(j)) * z.D + d];
          s[j] = through_terms(content[j], b, h, i, static_cast<int64_t>(j));
          top = std::max(top, s[j]);
        }
        if (top == -INFINITY) continue;
        for (size_t j = 0; j < s.size(); ++j) {
          total += soft[j] = std::exp(s[j] - top);
          ties += s[j] == top ? 1 : 0;
        }
        for (int64_t at = 0; at < z.M; ++at) {
          const auto j = static_cast<size_t>(at);
          const int64_t place = ((b * z.H + h) * z.N + i) * z.M + at;
          soft[j] /= total;
          const double factor = drops ? kind.factors[place] : 1, weight = kind.hard ? (s[j] == top ? 1 / ties : 0) : soft[j];
          e.weights[place] = weight;
          for (int64_t c = 0; c < z.E; ++c) {
            const int64_t vj = (head * z.M + at) * z.E + c;
            e.out[oi + c] += weight * factor * v[vj];
            e.dv[vj] += weight * factor * g[oi + c];
            dp[j] += factor * g[oi + c] * v[vj];
          }
          shared += soft[j] * dp[j];
        }
        for (int64_t at = 0; at < z.M && kind.score_gradient; ++at) {
          const auto j = static_cast<size_t>(at);
          const double ds = soft[j] * (dp[j] - shared);
          if (ds == 0) continue;
          const auto score = [&] { return through_terms(content[j], b, h, i, at); };
          const double through = beta * ds * slope(content[j], score);
          for (int64_t d = 0; d < z.D; ++d) {
            e.dq[qi + d] += through * k[(head * z.M + at) * z.D + d];
            e.dk[(head * z.M + at) * z.D + d] += through * q[qi + d];
          }
          for (size_t t = 0; t < terms.size(); ++t)
            for (const Read& read : terms[t].reads ? terms[t].reads(b, h, i, at) : std::vector<Read>())
              e.parameters[t][read.which][read.index] += ds * slope(parameters[t][read.which][read.index], score);
        }
      }
  return e;
}

Inputs::Inputs(const Sizes& z)
    : q(normal_input({z.B, z.H, z.N, z.D}, 1)), k(normal_input({z.B, z.G, z.M, z.D}, 2)), v(normal_input({z.B, z.G, z.M, z.E}, 3)) {}

void expect_near(const std::string& what, const Tensor& got, const Doubles& expected, double tolerance, double floor) {
  ASSERT_EQ(got.shape(), expected.shape) << what;
  const Doubles values(got);
  double largest = 0;
  for (double x : expected.values) largest = std::max(largest, std::abs(x));
  for (int64_t i = 0; i < values.size(); ++i)
    ASSERT_LE(std::abs(values[i] - expected[i]), tolerance * largest + floor)
        << what << " " << i << ": " << values[i] << ", expected " << expected[i];
}

void expect_same_for_any_threads(const Tensors& got, const std::function<Tensors()>& run) {
  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    const Tensors again = run();
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), again[i].to_vector<float>()) << "tensor " << i << " with " << other << " threads";
  }
  set_thread_count(threads);
}

}  // namespace heed::test
