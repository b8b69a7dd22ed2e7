// Linear attention against a plain double reference in the quadratic order: values, gradients, states, odd shapes.
#include "heed/attention/linear_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/attention/attention.h"
#include "heed/core/parallel.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

const FeatureMap kMaps[] = {FeatureMap::elu, FeatureMap::relu, FeatureMap::random};
const char* name_of(FeatureMap map) { return map == FeatureMap::elu ? "elu" : map == FeatureMap::relu ? "relu" : "random"; }

LinearAttentionOptions options_of(FeatureMap map, bool causal, int64_t D) {
  Rng rng(5);
  return {.map = map,
          .causal = causal,
          .projection = map == FeatureMap::random ? random_projection(2 * D + 1, D, rng).to(test_device()) : Tensor()};
}

double scale_of(const LinearAttentionOptions& options, int64_t D) {
  return std::sqrt(options.beta.value_or(options.map == FeatureMap::random ? 1 / std::sqrt(static_cast<float>(D)) : 1.0f));
}

// phi of every row of x: (rows, D) -> (rows, R), and its backward.
struct Features {
  const LinearAttentionOptions& options;
  int64_t D, R = options.map == FeatureMap::random ? options.projection.size(0) : D;
  double scale = scale_of(options, D);
  Doubles w = options.projection.defined() ? Doubles(options.projection) : Doubles({0});

  Doubles phi(const Doubles& x) const {
    const int64_t rows = x.size() / D;
    Doubles y({rows, R});
    for (int64_t i = 0; i < rows * R; ++i) {
      const int64_t row = i / R, r = i % R;
      if (options.map == FeatureMap::random) {
        double exponent = 0;
        for (int64_t d = 0; d < D; ++d) {
          const double t = scale * x[row * D + d];
          exponent += w[r * D + d] * t - t * t / 2;
        }
        y[i] = std::exp(exponent);
      } else {
        const double t = scale * x[i];
        y[i] = options.map == FeatureMap::elu ? (t > 0 ? t + 1 : std::exp(t)) : std::max(t, 0.0) + 1e-3;
      }
    }
    return y;
  }

  Doubles back(const Doubles& x, const Doubles& y, const Doubles& dy) const {
    Doubles dx(x.shape);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t row = i / R, r = i % R;
      if (options.map == FeatureMap::random) {
        for (int64_t d = 0; d < D; ++d) dx[row * D + d] += dy[i] * y[i] * scale * (w[r * D + d] - scale * x[row * D + d]);
      } else {
        const double t = scale * x[i];
        dx[i] = dy[i] * scale * (t > 0 ? 1 : options.map == FeatureMap::elu ? std::exp(t) : 0);
      }
    }
    return dx;
  }
};

// The output, dq, dk and dv.
Many reference(const Sizes& z, const LinearAttentionOptions& options, const Many& x, const Doubles& g) {
  const Features f{.options = options, .D = z.D};
  const Doubles a = f.phi(x[0]), c = f.phi(x[1]), &v = x[2];
  const auto lengths = options.lengths.defined() ? options.lengths.to_vector<int64_t>() : std::vector<int64_t>();
  Doubles out({z.B, z.H, z.N, z.E}), da(a.shape), dc(c.shape), dv(v.shape);
  for (int64_t row = 0; row < z.B * z.H * z.N; ++row) {
    const int64_t b = row / (z.H * z.N), h = row / z.N % z.H, i = row % z.N, first = (b * z.G + h / (z.H / z.G)) * z.M;
    int64_t keys = lengths.empty() ? z.M : lengths[static_cast<size_t>(b)];
    if (options.causal) keys = std::min(keys, i + 1);
    std::vector<double> weights;
    double total = 0, shared = 0;
    for (int64_t j = first; j < first + keys; ++j) {
      double s = 0;
      for (int64_t r = 0; r < f.R; ++r) s += a[row * f.R + r] * c[j * f.R + r];
      weights.push_back(s);
      total += s;
    }
    if (total == 0) continue;
    for (int64_t j = first; j < first + keys; ++j)
      for (int64_t e = 0; e < z.E; ++e) {
        const double share = weights[static_cast<size_t>(j - first)] / total;
        out[row * z.E + e] += share * v[j * z.E + e];
        dv[j * z.E + e] += share * g[row * z.E + e];
      }
    for (int64_t e = 0; e < z.E; ++e) shared += g[row * z.E + e] * out[row * z.E + e];
    for (int64_t j = first; j < first + keys; ++j) {
      double ds = -shared;
      for (int64_t e = 0; e < z.E; ++e) ds += g[row * z.E + e] * v[j * z.E + e];
      for (int64_t r = 0; r < f.R; ++r) {
        da[row * f.R + r] += ds / total * c[j * f.R + r];
        dc[j * f.R + r] += ds / total * a[row * f.R + r];
      }
    }
  }
  return {out, f.back(x[0], a, da), f.back(x[1], c, dc), dv};
}

constexpr double kFloor = 1e-8;  // with one key the true gradient is zero

void check_agrees(const Sizes& z, const LinearAttentionOptions& options) {
  SCOPED_TRACE(std::string(name_of(options.map)) + (options.causal ? " causal" : " full") + (options.quadratic ? " quadratic" : "") +
               " N " + std::to_string(z.N) + " M " + std::to_string(z.M) + " D " + std::to_string(z.D));
  const Tensor q = normal_input({z.B, z.H, z.N, z.D}, 1).require_grad(), k = normal_input({z.B, z.G, z.M, z.D}, 2).require_grad(),
               v = normal_input({z.B, z.G, z.M, z.E}, 3).require_grad(), g = normal_input({z.B, z.H, z.N, z.E}, 4);
  const auto run = [&] {
    for (const Tensor& x : {q, k, v}) x.zero_grad();
    const Tensor out = linear_attention(q, k, v, options);
    backward(out, g);
    return Tensors{out.detach(), q.grad(), k.grad(), v.grad()};
  };
  const Tensors got = run();
  const Many expected = reference(z, options, {Doubles(q), Doubles(k), Doubles(v)}, Doubles(g));
  const char* names[] = {"out", "dq", "dk", "dv"};
  for (size_t i = 0; i < 4; ++i) expect_near(names[i], got[i], expected[i], i == 0 ? 2e-6 : 1e-4, kFloor);
  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    const Tensors again = run();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i].to_vector<float>(), again[i].to_vector<float>()) << names[i] << " with " << other;
  }
  set_thread_count(threads);
}

TEST(LinearAttention, matches_the_reference) {
  for (const Sizes& z :
       {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 2, 1, 5, 7, 3, 2}, Sizes{1, 2, 2, 97, 13, 17, 33}, Sizes{1, 1, 1, 3, 521, 16, 16},
        Sizes{1, 4, 2, 101, 259, 5, 7}, Sizes{2, 1, 1, 193, 31, 64, 1}, Sizes{1, 1, 1, 1031, 3, 2, 19}})
    for (const FeatureMap map : kMaps) check_agrees(z, options_of(map, false, z.D));
}

TEST(LinearAttention, matches_the_reference_when_causal) {
  for (const Sizes& z : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 2, 1, 7, 7, 3, 2}, Sizes{1, 4, 2, 65, 65, 17, 33},
                         Sizes{2, 1, 1, 193, 193, 5, 1}, Sizes{1, 2, 1, 601, 601, 4, 3}})
    for (const FeatureMap map : kMaps) check_agrees(z, options_of(map, true, z.D));
}

TEST(LinearAttention, matches_the_reference_with_key_lengths_and_a_temperature) {
  const Sizes z{4, 2, 1, 131, 131, 6, 5};
  for (const FeatureMap map : kMaps)
    for (const bool causal : {false, true}) {
      LinearAttentionOptions options = options_of(map, causal, z.D);
      options.beta = 0.5f;
      options.lengths = Tensor::from(std::vector<int64_t>{131, 70, 1, 0}, {4}, test_device());
      check_agrees(z, options);
    }
}

TEST(LinearAttention, matches_the_reference_in_quadratic_order) {
  const Sizes z{2, 4, 2, 71, 71, 6, 5};
  for (const FeatureMap map : kMaps)
    for (const bool causal : {false, true}) {
      LinearAttentionOptions options = options_of(map, causal, z.D);
      options.lengths = Tensor::from(std::vector<int64_t>{71, 0}, {2}, test_device());
      options.quadratic = true;
      check_agrees(z, options);
    }
}

TEST(LinearAttention, accepts_views_and_half_precision) {
  for (const bool causal : {false, true}) {
    const LinearAttentionOptions options{.causal = causal};
    check_case("linear_attention", {.what = causal ? "causal" : "full",
                                    .inputs = {normal_input({1, 2, 6, 3}, 1), normal_input({1, 1, 6, 3}, 2), normal_input({1, 1, 6, 2}, 3)},
                                    .run = [=](const Tensors& t) { return Tensors{linear_attention(t[0], t[1], t[2], options)}; },
                                    .reference =
                                        [=](const Many& x) {
                                          return Many{reference({1, 2, 1, 6, 6, 3, 2}, options, x, Doubles({1, 2, 6, 2}))[0]};
                                        }});
  }
}

TEST(LinearAttention, steps_match_the_causal_form) {
  const Tensor q = normal_input({2, 4, 150, 8}, 1), k = normal_input({2, 2, 150, 8}, 2), v = normal_input({2, 2, 150, 5}, 3);
  for (const FeatureMap map : kMaps) {
    SCOPED_TRACE(name_of(map));
    const LinearAttentionOptions options = options_of(map, true, 8);
    const auto rows = [](const Tensor& x, int64_t begin, int64_t end) { return slice(x, 2, begin, end); };
    LinearAttentionState state{options};
    state.append(rows(k, 0, 100), rows(v, 0, 100));  // a prompt whose outputs are not needed
    Tensors outs;
    for (int64_t i = 100; i < 140; ++i)
      outs.push_back(linear_attention_step(rows(q, i, i + 1), rows(k, i, i + 1), rows(v, i, i + 1), state));
    outs.push_back(linear_attention_step(rows(q, 140, 150), rows(k, 140, 150), rows(v, 140, 150), state));
    const Doubles got(concat(outs, 2)), expected(contiguous(rows(linear_attention(q, k, v, options), 100, 150)));
    for (int64_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
  }
}

TEST(LinearAttention, causal_form_ignores_later_keys) {
  const Tensor q = normal_input({1, 1, 200, 4}, 1), k = normal_input({1, 1, 200, 4}, 2), v = normal_input({1, 1, 200, 4}, 3);
  for (const FeatureMap map : kMaps) {
    const LinearAttentionOptions options = options_of(map, true, 4);
    const auto begin = [&](const Tensor& keys) {
      return contiguous(slice(linear_attention(q, keys, v, options), 2, 0, 90)).to_vector<float>();
    };
    const Tensor other = concat({slice(k, 2, 0, 90), scale(slice(k, 2, 90, 200), 30)}, 2);
    EXPECT_EQ(begin(k), begin(other)) << name_of(map);
  }
}

TEST(LinearAttention, random_features_are_finite_for_large_and_small_keys) {
  // Norms for which e^(-|k|^2 / 2) underflows.
  const Tensor q = scale(normal_input({1, 1, 130, 16}, 1), 20).require_grad(), v = normal_input({1, 1, 130, 3}, 3);
  Tensor k = concat({scale(normal_input({1, 1, 65, 16}, 2), 30), normal_input({1, 1, 65, 16}, 4)}, 2).detach().require_grad();
  for (const bool causal : {false, true}) {
    const Tensor out = linear_attention(q, k, v, options_of(FeatureMap::random, causal, 16));
    backward(out, Tensor::ones(out.shape(), test_device()));
    for (const Tensor& x : {out.detach(), q.grad(), k.grad()})
      for (const float value : x.to_vector<float>()) ASSERT_TRUE(std::isfinite(value));
    for (int64_t e = 0; causal && e < 3; ++e) EXPECT_NEAR(Doubles(out)[e], Doubles(v)[e], 1e-5) << "the first query sees one key";
  }
}

TEST(LinearAttention, random_features_approximate_softmax) {
  Rng rng(9);
  const Tensor q = scale(normal_input({1, 1, 64, 8}, 1), 0.7f), k = scale(normal_input({1, 1, 64, 8}, 2), 0.7f),
               v = normal_input({1, 1, 64, 8}, 3);
  const Doubles exact(attention(q, k, v));
  const auto error = [&](int64_t features) {
    const Doubles got(
        linear_attention(q, k, v, {.map = FeatureMap::random, .projection = random_projection(features, 8, rng).to(test_device())}));
    double sum = 0;
    for (int64_t i = 0; i < got.size(); ++i) sum += std::pow(got[i] - exact[i], 2);
    return std::sqrt(sum / static_cast<double>(got.size()));
  };
  EXPECT_LT(error(65536), std::min(0.01, error(256) / 8));  // 16 on average
}

TEST(LinearAttention, projections_are_orthogonal_with_the_norms_of_gaussian_vectors) {
  Rng rng(3);
  const Tensor w = random_projection(50, 20, rng);
  const Doubles products(matmul(w, transpose(w, 0, 1)));
  double mean = 0;
  for (int64_t i = 0; i < 50; ++i) {
    mean += products[i * 51] / 50;
    for (int64_t j = i / 20 * 20; j < i; ++j) EXPECT_NEAR(products[i * 50 + j], 0, 1e-4);
  }
  EXPECT_NEAR(mean, 20, 3);
  Rng again(3);
  EXPECT_EQ(random_projection(50, 20, again).to_vector<float>(), w.to_vector<float>());
}

TEST(LinearAttention, accepts_no_tokens) {
  const Tensor q = Tensor::ones({1, 1, 2, 4}, test_device()).require_grad(), none = Tensor::ones({1, 1, 0, 4}, test_device());
  for (const FeatureMap map : kMaps) {
    const Tensor out = linear_attention(q, none, none, options_of(map, false, 4));
    EXPECT_EQ(out.to_vector<float>(), std::vector<float>(8, 0.0f));
    backward(out, Tensor::ones(out.shape(), test_device()));
    EXPECT_EQ(q.grad().to_vector<float>(), std::vector<float>(8, 0.0f));
    EXPECT_EQ(linear_attention(none, none, none, options_of(map, true, 4)).count(), 0);
  }
}

TEST(LinearAttention, memory_grows_linearly_with_the_length) {
  const Tensor x = normal_input({1, 1, 16384, 64}, 1).require_grad(), g = normal_input({1, 1, 16384, 64}, 4);
  reset_peak_memory(kCpu);
  const int64_t start = memory_use(kCpu).in_use;
  backward(linear_attention(x, x, x, {.causal = true}), g);
  const int64_t results = 4 * x.count() * static_cast<int64_t>(sizeof(float));  // the output and three gradients
  EXPECT_LE(memory_use(kCpu).peak - start - results, int64_t{4} << 20);
}

TEST(LinearAttention, reports_invalid_arguments) {
  const Tensor q = Tensor::zeros({1, 4, 3, 8}, test_device()), k = Tensor::zeros({1, 4, 5, 8}, test_device());
  expect_error([&] { linear_attention(q, Tensor::zeros({1, 4, 5, 7}, test_device()), k); }, "queries have 8 numbers, keys 7");
  expect_error(
      [&] {
        linear_attention(q, Tensor::zeros({1, 3, 5, 8}, test_device()), Tensor::zeros({1, 3, 5, 8}, test_device()));
      },
      "4 query heads do not share 3");
  expect_error([&] { linear_attention(q, k, Tensor::zeros({1, 4, 6, 8}, test_device())); }, "differ in heads or keys");
  expect_error([&] { linear_attention(q, k, k, {.causal = true}); }, "causal with 3 queries and 5 keys");
  expect_error([&] { linear_attention(q, k, k, {.map = FeatureMap::random}); }, "projection has shape (), expected (R, 8)");
  expect_error([&] { linear_attention(q, k, k, {.beta = -1.0f}); }, "beta is -1, expected 0 or more");
  expect_error([&] { linear_attention(q, k, k, {.lengths = Tensor::zeros({2}, DType::i64, test_device())}); },
               "lengths have shape (2), expected (1)");
  LinearAttentionState state;
  state.append(k, k);
  expect_error(
      [&] {
        state.append(k, Tensor::zeros({1, 4, 5, 9}, test_device()));
      },
      "sums of shape (1, 4, 8, 8), new keys and values need (1, 4, 8, 9)");
}

}  // namespace
}  // namespace heed::test
