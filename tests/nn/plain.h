// Reference layers in double, by parameter name, and a check of a module against them: values, gradients of all parameters and
// inputs by central differences, bit-equal results for any number of threads.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/nn/params.h"
#include "tests/ops/cases.h"

namespace heed::test {

using NamedDoubles = std::map<std::string, Doubles>;

// Replaces every parameter by standard-normal numbers: initial biases of 0 and norms of 1 would hide errors.
inline void randomize(const Params& params, float scale = 1) {
  uint64_t seed = 1000;
  for (const Parameter& p : params.all()) copy_into(normal_input(p.tensor.shape(), ++seed) * scale, p.tensor.detach());
}

inline NamedDoubles named(const Params& params) {
  NamedDoubles out;
  for (const Parameter& p : params.all()) out.emplace(p.name, Doubles(p.tensor));
  return out;
}

namespace plain {

// x: (..., I), weight: (O, I), bias: (O) if there is one
inline Doubles linear(const NamedDoubles& p, const std::string& name, const Doubles& x) {
  const Doubles& w = p.at(name + ".weight");
  const auto bias = p.find(name + ".bias");
  const int64_t O = w.dim(0), I = w.dim(1), rows = x.size() / I;
  Shape shape = x.shape;
  shape[shape.rank() - 1] = O;
  Doubles y(shape);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < O; ++o) {
      y[r * O + o] = bias == p.end() ? 0 : bias->second[o];
      for (int64_t i = 0; i < I; ++i) y[r * O + o] += x[r * I + i] * w[o * I + i];
    }
  return y;
}

inline Doubles norm(const NamedDoubles& p, const std::string& name, const Doubles& x, double eps) {
  const Doubles& w = p.at(name + ".weight");
  const auto bias = p.find(name + ".bias");  // without bias: RMS norm
  const int64_t D = w.dim(0);
  Doubles y = x;
  for (int64_t r = 0; r < x.size() / D; ++r) {
    double mean = 0, square = 0;
    for (int64_t d = 0; d < D; ++d) mean += bias == p.end() ? 0 : x[r * D + d] / static_cast<double>(D);
    for (int64_t d = 0; d < D; ++d) square += (x[r * D + d] - mean) * (x[r * D + d] - mean) / static_cast<double>(D);
    for (int64_t d = 0; d < D; ++d)
      y[r * D + d] = (x[r * D + d] - mean) / std::sqrt(square + eps) * w[d] + (bias == p.end() ? 0 : bias->second[d]);
  }
  return y;
}

inline Doubles add(Doubles a, const Doubles& b) {
  for (int64_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

inline Doubles map(Doubles x, const std::function<double(double)>& f) {
  for (double& value : x.values) value = f(value);
  return x;
}

inline double relu(double x) { return x < 0 ? 0 : x; }
inline double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
inline double silu(double x) { return x / (1 + std::exp(-x)); }

// Changes a score; b, h, i, j: item, head, query, key.
using Score = std::function<double(double s, int64_t b, int64_t h, int64_t i, int64_t j)>;
inline double causal(double s, int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? s : -INFINITY; }

// The sum over heads of softmax(A) Z W with W = W_v W_out of the head, plus biases. Without queries the scores are those of the
// terms, without value projection Z W is Z W_out. x: (B, N, I), memory: (B, M, I') -> (B, N, O)
inline Doubles multi_head(const NamedDoubles& p, const std::string& name, const Doubles& x, const Doubles& memory, int64_t H, int64_t G,
                          const Score& score = {}) {
  const bool content = p.contains(name + ".query.weight"), projected = p.contains(name + ".value.weight");
  const Doubles& out = p.at(name + ".output.weight");
  const int64_t B = x.dim(0), N = x.dim(1), M = memory.dim(1), O = out.dim(0), E = out.dim(1) / H;
  const Doubles q = content ? linear(p, name + ".query", x) : Doubles({B, N, H}),
                k = content ? linear(p, name + ".key", memory) : Doubles({B, M, G});
  const Doubles v = projected ? linear(p, name + ".value", memory) : memory;
  const int64_t D = q.dim(2) / H;
  Doubles y({B, N, O});
  const auto bias = p.find(name + ".output.bias");
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i = 0; i < N; ++i) {
      for (int64_t o = 0; o < O; ++o) y[(b * N + i) * O + o] = bias == p.end() ? 0 : bias->second[o];
      for (int64_t h = 0; h < H; ++h) {
        const int64_t g = h / (H / G);
        std::vector<double> a(static_cast<size_t>(M));
        double total = 0;
        for (int64_t j = 0; j < M; ++j) {
          double s = 0;
          for (int64_t d = 0; d < D; ++d)
            s += q[((b * N + i) * H + h) * D + d] * k[((b * M + j) * G + g) * D + d] / std::sqrt(static_cast<double>(D));
          a[static_cast<size_t>(j)] = std::exp(score ? score(s, b, h, i, j) : s);
          total += a[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < M; ++j)
          for (int64_t o = 0; o < O; ++o)
            for (int64_t e = 0; e < E; ++e)
              y[(b * N + i) * O + o] += a[static_cast<size_t>(j)] / total * v[((b * M + j) * G + g) * E + e] * out[o * H * E + h * E + e];
      }
    }
  return y;
}

}  // namespace plain

// A module with its parameters, and its reference in double.
struct ModuleCase {
  const Params& params;
  Tensors inputs;
  std::function<Tensor(const Tensors& x)> run;
  std::function<Doubles(const NamedDoubles& p, const Many& x)> reference;
  double tolerance = 3e-6, gradient_tolerance = 5e-5;
};

struct ModuleResult {
  std::vector<float> out;
  std::vector<std::vector<float>> gradients;  // of the inputs, then of the parameters
  bool operator==(const ModuleResult&) const = default;
};

inline ModuleResult evaluate(const ModuleCase& c) {
  Tensors leaves;
  for (const Tensor& input : c.inputs) leaves.push_back(input.detach().require_grad());
  for (const Parameter& p : c.params.all()) p.tensor.zero_grad();
  const Tensor out = c.run(leaves);
  backward(out, normal_input(out.shape(), 100));
  ModuleResult result{out.to_vector<float>(), {}};
  for (const Parameter& p : c.params.all()) leaves.push_back(p.tensor);
  for (const Tensor& leaf : leaves) {
    EXPECT_TRUE(leaf.grad().defined()) << "no gradient reaches a tensor of shape " << leaf.shape();
    result.gradients.push_back((leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape(), kCpu)).to_vector<float>());
  }
  return result;
}

inline void check_module(const std::string& what, const ModuleCase& c) {
  SCOPED_TRACE(what);
  const ModuleResult result = evaluate(c);
  NamedDoubles p = named(c.params);
  Many x;
  for (const Tensor& input : c.inputs) x.emplace_back(input);
  const Doubles expected = c.reference(p, x), weight(normal_input(expected.shape, 100));
  ASSERT_EQ(expected.size(), std::ssize(result.out));
  double largest = 0, heaviest = 0;
  for (double value : expected.values) largest = std::max(largest, std::abs(value));
  for (double value : weight.values) heaviest = std::max(heaviest, std::abs(value));
  for (int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(result.out[static_cast<size_t>(i)], expected[i], c.tolerance * largest) << "element " << i;

  const auto loss = [&] {
    const Doubles y = c.reference(p, x);
    double total = 0;
    for (int64_t i = 0; i < y.size(); ++i) total += y[i] * weight[i];
    return total;
  };
  const auto check_gradient = [&](const std::string& name, Doubles& values, const std::vector<float>& got) {
    double steepest = heaviest;  // the error of a sum scales with its terms, which the other elements estimate
    for (float g : got) steepest = std::max(steepest, std::abs(static_cast<double>(g)));
    for (int64_t i = 0; i < values.size(); ++i) {
      const double before = values[i], h = 1e-5;
      values[i] = before + h;
      const double above = loss();
      values[i] = before - h;
      const double below = loss();
      values[i] = before;
      ASSERT_NEAR(got[static_cast<size_t>(i)], (above - below) / (2 * h), c.gradient_tolerance * steepest) << name << " element " << i;
    }
  };
  for (size_t i = 0; i < x.size(); ++i) check_gradient("input " + std::to_string(i), x[i], result.gradients[i]);
  for (size_t i = 0; i < c.params.all().size(); ++i)
    check_gradient(c.params.all()[i].name, p.at(c.params.all()[i].name), result.gradients[x.size() + i]);

  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    EXPECT_TRUE(evaluate(c) == result) << other << " threads";
  }
  set_thread_count(threads);
}

inline void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << "element " << i;
}

}  // namespace heed::test
