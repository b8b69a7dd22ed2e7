// Recurrent layers against the equations in double, token by token, with gradients; and additive attention.
#include "heed/nn/recurrent.h"

#include "heed/core/autograd.h"
#include "heed/ops/ops.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// x: (N, I), one sequence -> outputs (N, D)
Doubles recurrent_by_hand(const NamedDoubles& p, RecurrentKind kind, const Doubles& x, int64_t D) {
  const int64_t N = x.dim(0), I = x.dim(1);
  Doubles out(Shape{N, D}), h(Shape{1, D}), c(Shape{1, D});
  for (int64_t t = 0; t < N; ++t) {
    Doubles token(Shape{1, I});
    for (int64_t i = 0; i < I; ++i) token[i] = x[t * I + i];
    const Doubles a = plain::linear(p, "input", token), b = plain::linear(p, "hidden", h);
    for (int64_t d = 0; d < D; ++d) {
      if (kind == RecurrentKind::lstm) {
        const auto gate = [&](int64_t g) { return a[g * D + d] + b[g * D + d]; };
        c[d] = sigmoid_of(gate(1)) * c[d] + sigmoid_of(gate(0)) * std::tanh(gate(2));
        h[d] = sigmoid_of(gate(3)) * std::tanh(c[d]);
      } else {
        const double r = sigmoid_of(a[d] + b[d]), z = sigmoid_of(a[D + d] + b[D + d]);
        h[d] = (1 - z) * std::tanh(a[2 * D + d] + r * b[2 * D + d]) + z * h[d];
      }
      out[t * D + d] = h[d];
    }
  }
  return out;
}

struct RecurrentCase {
  Params params = Params(1);
  Recurrent layer = {};

  explicit RecurrentCase(RecurrentKind kind) {
    layer = make_recurrent(Scope(params, initializer::vit()), kind, 3, 4);
    randomize(params, 0.5f);
  }
};

TEST(Recurrent, matches_the_equations) {
  for (const RecurrentKind kind : {RecurrentKind::lstm, RecurrentKind::gru}) {
    const RecurrentCase each(kind);
    const Tensor x = normal_input({1, 6, 3}, 5);
    const Doubles expected = recurrent_by_hand(named(each.params), kind, Doubles(reshape(x, {6, 3})), 4);
    const auto [out, last] = each.layer(x, {}, each.layer.start(1));
    const std::vector<float> found = out.to_vector<float>(), state = last.h.to_vector<float>();
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[static_cast<int64_t>(i)], 1e-5);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(state[i], found[20 + i]);
    EXPECT_EQ(last.c.defined(), kind == RecurrentKind::lstm);
  }
}

// Padding does not change the state, in either direction: a padded sequence has the outputs of the sequence alone. Products of one row and
// of two may add in another order, so the last bits may differ.
TEST(Recurrent, ignores_padding) {
  for (const RecurrentKind kind : {RecurrentKind::lstm, RecurrentKind::gru}) {
    const RecurrentCase each(kind);
    const Tensor x = normal_input({2, 5, 3}, 6);
    const Tensor keep = Tensor::from(std::vector<float>{1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, {2, 5}, test_device());
    for (const bool reverse : {false, true}) {
      const auto [padded, last] = each.layer(x, keep, each.layer.start(2), reverse);
      const auto [alone, end] = each.layer(slice(slice(x, 0, 0, 1), 1, 0, 3), {}, each.layer.start(1), reverse);
      expect_near(slice(slice(padded, 0, 0, 1), 1, 0, 3), alone, 1e-6);
      expect_near(slice(last.h, 0, 0, 1), end.h, 1e-6);
    }
  }
}

TEST(Recurrent, gradients_match_finite_differences) {
  for (const RecurrentKind kind : {RecurrentKind::lstm, RecurrentKind::gru}) {
    const RecurrentCase each(kind);
    const Tensor x = normal_input({2, 4, 3}, 7), weights = normal_input({2, 4, 4}, 8);
    const auto loss = [&] { return sum(each.layer(x, {}, each.layer.start(2)).first * weights); };
    backward(loss());
    const NoGrad no_grad;
    for (const Parameter& parameter : each.params.all()) {
      const std::vector<float> slope = parameter.tensor.grad().to_vector<float>(), before = parameter.tensor.to_vector<float>();
      for (size_t i = 0; i < before.size(); i += 5) {
        const auto moved = [&](float step) {
          std::vector<float> changed = before;
          changed[i] += step;
          copy_into(Tensor::from(changed, parameter.tensor.shape(), kCpu), parameter.tensor.detach());
          return static_cast<double>(loss().item());
        };
        const double difference = (moved(1e-2f) - moved(-1e-2f)) / 2e-2;
        copy_into(Tensor::from(before, parameter.tensor.shape(), kCpu), parameter.tensor.detach());
        EXPECT_NEAR(static_cast<double>(slope[i]), difference, 0.02 * std::abs(difference) + 3e-3) << parameter.name;
      }
    }
  }
}

TEST(AdditiveAttention, matches_the_formula) {
  Params params(1);
  const Scope scope(params, initializer::vit());
  const AdditiveAttention attention{.query = Linear(scope / "query", 4, 3, {.bias = false}),
                                    .key = Linear(scope / "key", 4, 3),
                                    .score = Linear(scope / "score", 3, 1, {.bias = false})};
  randomize(params);
  const Tensor q = normal_input({1, 2, 4}, 1), memory = normal_input({1, 5, 4}, 2);
  const Tensor visible = converted(Tensor::from(std::vector<float>{1, 1, 0, 1, 1}, {1, 5}, kCpu), DType::boolean);
  const auto [context, map] = attention(q, attention.key(memory), memory, visible);
  const NamedDoubles p = named(params);
  const Doubles queries = plain::linear(p, "query", Doubles(q)), keys = plain::linear(p, "key", Doubles(memory)), values(memory);
  const std::vector<float> found = context.to_vector<float>(), weights = map.to_vector<float>();
  for (int64_t n = 0; n < 2; ++n) {
    std::vector<double> e(5, 0);
    double all = 0;
    for (int64_t m = 0; m < 5; ++m) {
      if (m == 2) continue;
      double score = 0;
      for (int64_t a = 0; a < 3; ++a) score += p.at("score.weight")[a] * std::tanh(queries[n * 3 + a] + keys[m * 3 + a]);
      all += e[static_cast<size_t>(m)] = std::exp(score);
    }
    for (int64_t m = 0; m < 5; ++m) EXPECT_NEAR(weights[static_cast<size_t>(n * 5 + m)], e[static_cast<size_t>(m)] / all, 1e-5);
    for (int64_t d = 0; d < 4; ++d) {
      double expected = 0;
      for (int64_t m = 0; m < 5; ++m) expected += e[static_cast<size_t>(m)] / all * values[m * 4 + d];
      EXPECT_NEAR(found[static_cast<size_t>(n * 4 + d)], expected, 1e-5);
    }
  }
}

}  // namespace
}  // namespace heed::test
