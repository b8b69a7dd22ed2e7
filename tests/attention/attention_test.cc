// Attention against a plain double reference: every term alone and every pair of terms, odd shapes, grouped heads.
#include "heed/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "heed/core/parallel.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct Sizes {
  int64_t B, H, G, N, M, D, E;
};

// A term, and its score in double from its parameters in double.
struct Subject {
  std::string name;
  Term term;
  std::function<double(const Many& p, double s, int64_t b, int64_t h, int64_t i, int64_t j)> score;
};

double masked(bool keep, double s) { return keep ? s : -INFINITY; }

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

// The output and every gradient, written out.
struct Expected {
  Doubles out, dq, dk, dv;
  std::vector<Many> parameters;  // of every term
};

Expected reference(const Sizes& z, double beta, const std::vector<Subject>& terms, const Many& x, const Doubles& g) {
  const Doubles &q = x[0], &k = x[1], &v = x[2];
  Expected e{Doubles({z.B, z.H, z.N, z.E}), Doubles(q.shape), Doubles(k.shape), Doubles(v.shape), {}};
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

void check_terms(const Sizes& z, const std::vector<Subject>& subjects, std::optional<float> beta = {}) {
  std::string name = "terms";
  std::vector<Term> terms;
  for (const Subject& subject : subjects) {
    name += " " + subject.name;
    terms.push_back(subject.term);
  }
  SCOPED_TRACE(name);
  const Tensor q = normal_input({z.B, z.H, z.N, z.D}, 1).require_grad(), k = normal_input({z.B, z.G, z.M, z.D}, 2).require_grad(),
               v = normal_input({z.B, z.G, z.M, z.E}, 3).require_grad(), g = normal_input({z.B, z.H, z.N, z.E}, 4);
  const auto run = [&] {
    for (const Tensor& x : {q, k, v}) x.zero_grad();
    for (const Term& term : terms)
      for (const Tensor& p : parameters_of(term)) p.zero_grad();
    const Tensor out = attention(q, k, v, {beta, terms});
    backward(out, g);
    Tensors all{out.detach(), q.grad(), k.grad(), v.grad()};
    for (const Term& term : terms)
      for (const Tensor& p : parameters_of(term)) all.push_back(p.grad());
    return all;
  };
  const Tensors got = run();
  const double b = beta.value_or(1 / std::sqrt(static_cast<float>(z.D)));
  const Expected e = reference(z, b, subjects, {Doubles(q), Doubles(k), Doubles(v)}, Doubles(g));
  expect_near("out", got[0], e.out, 2e-6);
  expect_near("dq", got[1], e.dq, 1e-4);
  expect_near("dk", got[2], e.dk, 1e-4);
  expect_near("dv", got[3], e.dv, 1e-4);
  size_t next = 4;
  for (const Many& parameters : e.parameters)
    for (const Doubles& expected : parameters) expect_near("parameter", got[next++], expected, 1e-4);
  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    const Tensors again = run();
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), again[i].to_vector<float>()) << "tensor " << i << " with " << other << " threads";
  }
  set_thread_count(threads);
}

TEST(Attention, agrees_without_terms_for_every_kind_of_size) {
  for (const Sizes& z : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 2, 1, 5, 7, 3, 2}, Sizes{1, 2, 2, 97, 13, 17, 33},
                         Sizes{1, 1, 1, 3, 521, 16, 16}, Sizes{1, 4, 2, 101, 259, 5, 7}, Sizes{2, 1, 1, 193, 31, 64, 1}})
    check_terms(z, {});
}

TEST(Attention, agrees_for_every_pair_of_terms) {
  const Sizes z{2, 2, 1, 19, 23, 5, 3};
  const auto all = every_term(z);
  for (size_t i = 0; i < all.size(); ++i) {
    check_terms(z, {all[i]});
    for (size_t j = i + 1; j < all.size(); ++j) check_terms(z, {all[i], all[j]});
  }
}

TEST(Attention, agrees_where_blocks_end) {
  const Sizes z{1, 1, 1, 113, 271, 4, 4};
  for (const Subject& subject : every_term(z))
    if (subject.name != "bias") check_terms(z, {subject});
}

TEST(Attention, needs_no_content) {
  const Sizes z{1, 2, 2, 19, 19, 4, 3};
  check_terms(z, {every_term(z).back()}, 0.0f);
}

TEST(Attention, a_fully_masked_row_gives_zeros_and_no_gradient) {
  const Tensor q = normal_input({1, 1, 3, 4}, 1).require_grad(), k = normal_input({1, 1, 5, 4}, 2).require_grad(),
               v = normal_input({1, 1, 5, 4}, 3).require_grad();
  const Tensor out = attention(q, k, v, {{}, {Causal{-1}}});
  backward(out, Tensor::ones(out.shape()));
  const auto y = out.to_vector<float>(), dq = q.grad().to_vector<float>();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y[i], 0);
    EXPECT_EQ(dq[i], 0);
  }
  EXPECT_NE(y[4], 0);
}

TEST(Attention, of_nothing_is_nothing) {
  const Tensor none = attention(Tensor::ones({1, 1, 2, 4}), Tensor::ones({1, 1, 0, 4}), Tensor::ones({1, 1, 0, 3}));
  EXPECT_EQ(none.to_vector<float>(), std::vector<float>(6, 0.0f));
  EXPECT_EQ(attention(Tensor::ones({0, 1, 2, 4}), Tensor::ones({0, 1, 3, 4}), Tensor::ones({0, 1, 3, 4})).count(), 0);
  const Tensor q = Tensor::ones({1, 1, 2, 4}).require_grad();
  backward(attention(q, Tensor::ones({1, 1, 0, 4}), Tensor::ones({1, 1, 0, 4})), Tensor::ones({1, 1, 2, 4}));
  EXPECT_EQ(q.grad().to_vector<float>(), std::vector<float>(8, 0.0f));
}

TEST(Attention, memory_grows_with_the_length_and_not_with_its_square) {
  const Tensor q = normal_input({1, 1, 16384, 64}, 1).require_grad(), k = normal_input({1, 1, 16384, 64}, 2).require_grad(),
               v = normal_input({1, 1, 16384, 64}, 3).require_grad(), g = normal_input({1, 1, 16384, 64}, 4);
  reset_peak_memory();
  const int64_t start = memory_use().in_use;
  backward(attention(q, k, v, {{}, {Window{300, 300}}}), g);
  const int64_t results = 4 * q.count() * static_cast<int64_t>(sizeof(float));  // the output and three gradients
  EXPECT_LE(memory_use().peak - start - results, int64_t{64} << 20);
}

TEST(Attention, says_what_is_wrong) {
  const Tensor q = Tensor::zeros({1, 4, 3, 8}), k = Tensor::zeros({1, 4, 5, 8});
  expect_error([&] { attention(q, Tensor::zeros({1, 4, 5, 7}), k); }, "queries have 8 numbers, keys 7");
  expect_error([&] { attention(q, Tensor::zeros({1, 3, 5, 8}), Tensor::zeros({1, 3, 5, 8})); }, "4 query heads do not share 3 key heads");
  expect_error([&] { attention(q, k, Tensor::zeros({1, 4, 6, 8})); }, "differ in heads or keys");
  expect_error(
      [&] {
        attention(q, k, k, {{}, {RelativeBias{Tensor::zeros({3, 5})}}});
      },
      "RelativeBias's table has shape (3, 5), expected (4, 5)");
  expect_error([&] { attention(q, k, k, {{}, {Chunks{0}}}); }, "Chunks of 0");
}

}  // namespace
}  // namespace heed::test
