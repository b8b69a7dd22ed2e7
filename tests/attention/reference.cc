// The terms, and attention itself, in double.
#include "tests/attention/reference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "heed/core/parallel.h"

namespace heed::test {

static double masked(bool keep, double s) { return keep ? s : -INFINITY; }

// Nine terms without anything to learn, then those with it, the bending one between them: pairs meet it in both orders.
std::vector<Subject> every_term(const Sizes& z) {
  const auto learned = [](Tensor x) { return x.require_grad(); };
  const int64_t reach = std::max<int64_t>(1, z.M / 3), grid = std::max<int64_t>(1, std::max(z.N, z.M) / 4), W = 3,
                distances = 2 * reach + 1;
  const int64_t cells_down = (z.N + 4) / 5, cells_along = (z.M + 4) / 5, rows = 2, columns = std::max<int64_t>(1, grid - 2);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < z.B; ++b) lengths.push_back(b % 2 == 0 ? (z.M + 1) / 2 : z.M);
  const auto some = [](int64_t count, int64_t period) {
    std::vector<float> kept;
    for (int64_t i = 0; i < count; ++i) kept.push_back(i * i % period < 2 * period / 3 ? 1.0f : 0.0f);
    return kept;
  };
  const std::vector<float> mask = some(z.B * z.N * z.M, 11), pattern = some(z.H * cells_down * cells_along, 7);
  const auto boolean = [](const std::vector<float>& values, const Shape& shape) {
    return cast(Tensor::from(values, shape), DType::boolean);
  };
  const Tensor alpha = scale(positive_input({z.H}, 6), 0.5f / static_cast<float>(grid * grid)),
               spread = scale(normal_input({z.H, 2, 2}, 12), 0.75f / static_cast<float>(grid));  // scores of about 1
  const auto apart = [=](const Doubles& center, int64_t h, int64_t i, int64_t j) {
    return std::array<double, 2>{static_cast<double>(i / grid - j / grid) - center[2 * h],
                                 static_cast<double>(i % grid - j % grid) - center[2 * h + 1]};
  };
  const auto distance = [=](int64_t i, int64_t j) { return std::clamp<int64_t>(j - i, -reach, reach) + reach; };
  const auto cell = [=](int64_t h, int64_t i, int64_t j) {
    const int64_t down = std::clamp<int64_t>(j / grid - i / grid, -rows, rows) + rows;
    return (h * (2 * rows + 1) + down) * (2 * columns + 1) + std::clamp<int64_t>(j % grid - i % grid, -columns, columns) + columns;
  };
  const auto bucket = [](int64_t apart_by) {  // four a side: 0, 1, 2 to 5, and the rest, as 2 (16 / 2)^(1/2) is 5.7
    const int64_t size = std::abs(apart_by), start = apart_by > 0 ? 4 : 0;
    return start + (size < 2 ? size : size < 6 ? 2 : 3);
  };
  using I = int64_t;
  return {{"causal", Causal{z.M - z.N}, [=](const Many&, double s, I, I, I i, I j) { return masked(j <= i + z.M - z.N, s); }},
          {"window", Window{z.M / 4, 2, 1},
           [=](const Many&, double s, I, I, I i, I j) { return masked((j >= i - z.M / 4 && j <= i + 2) || i < 1 || j < 1, s); }},
          {"chunks", Chunks{7, 3}, [](const Many&, double s, I, I, I i, I j) { return masked((i + 3) / 7 == (j + 3) / 7, s); }},
          {"dilated", Dilated{3}, [](const Many&, double s, I, I, I i, I j) { return masked((j - i) % 3 == 0, s); }},
          {"lengths", KeyLengths{Tensor::from(lengths, {z.B})},
           [=](const Many&, double s, I b, I, I, I j) { return masked(j < lengths[static_cast<size_t>(b)], s); }},
          {"mask", Mask{boolean(mask, {z.B, 1, z.N, z.M})},
           [=](const Many&, double s, I b, I, I i, I j) { return masked(mask[static_cast<size_t>((b * z.N + i) * z.M + j)] > 0, s); }},
          {"block sparse", BlockSparse{boolean(pattern, {z.H, cells_down, cells_along}), 5},
           [=](const Many&, double s, I, I h, I i, I j) {
             return masked(pattern[static_cast<size_t>((h * cells_down + i / 5) * cells_along + j / 5)] > 0, s);
           }},
          {"grid window", GridWindow{1, 2, grid},
           [=](const Many&, double s, I, I, I i, I j) {
             return masked(std::abs(i / grid - j / grid) <= 1 && std::abs(i % grid - j % grid) <= 2, s);
           }},
          {"bias", Bias{learned(normal_input({1, z.H, z.N, z.M}, 7))},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][(h * z.N + i) * z.M + j]; },
           [=](I, I h, I i, I j) {
             return std::vector<Read>{{0, (h * z.N + i) * z.M + j}};
           }},
          {"column bias", Bias{learned(normal_input({z.B, 1, 1, z.M}, 8))},
           [=](const Many& p, double s, I b, I, I, I j) { return s + p[0][b * z.M + j]; },
           [=](I b, I, I, I j) {
             return std::vector<Read>{{0, b * z.M + j}};
           }},
          {"soft cap", SoftCap{1.5f}, [](const Many&, double s, I, I, I, I) { return s == -INFINITY ? s : 1.5 * std::tanh(s / 1.5); }},
          {"relative", RelativeBias{learned(normal_input({z.H, distances}, 9))},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][h * distances + distance(i, j)]; },
           [=](I, I h, I i, I j) {
             return std::vector<Read>{{0, h * distances + distance(i, j)}};
           }},
          {"relative 2d", RelativeBias2d{learned(normal_input({z.H, 2 * rows + 1, 2 * columns + 1}, 13)), grid},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][cell(h, i, j)]; },
           [=](I, I h, I i, I j) {
             return std::vector<Read>{{0, cell(h, i, j)}};
           }},
          {"relative keys", RelativeKeys{learned(normal_input({z.B, z.H, z.N, W}, 14)), learned(normal_input({z.H, distances, W}, 15))},
           [=](const Many& p, double s, I b, I h, I i, I j) {
             for (int64_t d = 0; d < W; ++d) s += p[0][((b * z.H + h) * z.N + i) * W + d] * p[1][(h * distances + distance(i, j)) * W + d];
             return s;
           },
           [=](I b, I h, I i, I j) {
             std::vector<Read> all;
             for (int64_t d = 0; d < W; ++d) {
               all.push_back({0, ((b * z.H + h) * z.N + i) * W + d});
               all.push_back({1, (h * distances + distance(i, j)) * W + d});
             }
             return all;
           }},
          {"bucketed", BucketedBias{learned(normal_input({z.H, 8}, 16)), true, 16},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][h * 8 + bucket(j - i)]; },
           [=](I, I h, I i, I j) {
             return std::vector<Read>{{0, h * 8 + bucket(j - i)}};
           }},
          {"alibi", Alibi{learned(scale(positive_input({z.H}, 5), 0.1f))},
           [](const Many& p, double s, I, I h, I i, I j) { return s - p[0][h] * static_cast<double>(std::abs(i - j)); },
           [](I, I h, I, I) {
             return std::vector<Read>{{0, h}};
           }},
          {"gaussian", Gaussian2d{learned(alpha), learned(normal_input({z.H, 2}, 10)), grid},
           [=](const Many& p, double s, I, I h, I i, I j) {
             const auto [down, along] = apart(p[1], h, i, j);
             return s - p[0][h] * (down * down + along * along);
           },
           [](I, I h, I, I) {
             return std::vector<Read>{{0, h}, {1, 2 * h}, {1, 2 * h + 1}};
           }},
          {"full gaussian", Gaussian2dFull{learned(spread), learned(normal_input({z.H, 2}, 11)), grid},
           [=](const Many& p, double s, I, I h, I i, I j) {
             const auto [down, along] = apart(p[1], h, i, j);
             const double u = p[0][4 * h] * down + p[0][4 * h + 1] * along, v = p[0][4 * h + 2] * down + p[0][4 * h + 3] * along;
             return s - u * u - v * v;
           },
           [](I, I h, I, I) {
             return std::vector<Read>{{0, 4 * h}, {0, 4 * h + 1}, {0, 4 * h + 2}, {0, 4 * h + 3}, {1, 2 * h}, {1, 2 * h + 1}};
           }}};
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
  // How fast a score changes with a number.
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
