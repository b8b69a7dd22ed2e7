// Attention probabilities against the reference, and taps, which do not change outputs.
#include "heed/attention/probabilities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "heed/attention/cache.h"
#include "heed/attention/tap.h"
#include "heed/core/parallel.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

Doubles expected_weights(const Sizes& z, const std::vector<Subject>& subjects, const Inputs& x) {
  const double beta = 1 / std::sqrt(static_cast<double>(z.D));
  return reference(z, beta, subjects, {Doubles(x.q), Doubles(x.k), Doubles(x.v)}, Doubles({z.B, z.H, z.N, z.E})).weights;
}

// Weights of soft attention become those of hard attention.
Doubles hardened(Doubles weights) {
  const int64_t M = weights.dim(-1);
  for (int64_t first = 0; first < weights.size(); first += M) {
    double top = 0, ties = 0;
    for (int64_t j = 0; j < M; ++j) top = std::max(top, weights[first + j]);
    for (int64_t j = 0; j < M; ++j) ties += weights[first + j] == top;
    for (int64_t j = 0; j < M; ++j) weights[first + j] = top > 0 && weights[first + j] == top ? 1 / ties : 0;
  }
  return weights;
}

TEST(Probabilities, match_the_reference_for_every_term) {
  const Sizes z{2, 4, 2, 13, 21, 5, 1};
  const Inputs x(z);
  const auto terms = every_term(z);
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t other = i; other < terms.size(); ++other) {
      SCOPED_TRACE(terms[i].name + " " + terms[other].name);
      std::vector<Subject> subjects{terms[i]};
      if (other > i) subjects.push_back(terms[other]);
      AttentionOptions options;
      for (const Subject& subject : subjects) options.terms.push_back(subject.term);
      const Doubles weights = expected_weights(z, subjects, x);
      const Tensor soft = attention_probabilities(x.q, x.k, options);
      expect_near("soft", soft, weights, 4e-6);
      EXPECT_FALSE(soft.needs_grad());
      const auto values = soft.to_vector<float>();
      for (int64_t row = 0; row < z.B * z.H * z.N; ++row) {
        double total = 0, whole = 0;
        for (int64_t j = 0; j < z.M; ++j) {
          total += values[static_cast<size_t>(row * z.M + j)];
          whole += weights[row * z.M + j];
        }
        EXPECT_NEAR(total, whole > 0.5 ? 1 : 0, 1e-6);
      }
      options.hard = Hard::no_gradient;
      expect_near("hard", attention_probabilities(x.q, x.k, options), hardened(weights), 1e-6);
    }
}

TEST(Probabilities, match_the_reference_at_block_boundaries_and_for_any_number_of_threads) {
  for (const Sizes& z : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{1, 6, 3, 11, 523, 17, 2}, Sizes{2, 1, 1, 37, 259, 64, 1}}) {
    const Inputs x(z);
    const Tensor got = attention_probabilities(x.q, x.k);
    expect_near("probabilities", got, expected_weights(z, {}, x), 4e-6);
    const int threads = thread_count();
    for (int other : {1, 2, 7}) {
      set_thread_count(other);
      EXPECT_EQ(got.to_vector<float>(), attention_probabilities(x.q, x.k).to_vector<float>());
    }
    set_thread_count(threads);
  }
}

TEST(Probabilities, times_values_equal_the_output) {
  const Sizes z{2, 4, 2, 9, 30, 8, 6};
  const Inputs x(z);
  const Tensor beta = positive_input({4}, 6);
  const AttentionOptions options{.beta = beta, .terms = {Causal{}, Alibi{positive_input({4}, 7)}}, .first_query = 20};
  const Tensor v = index_select(x.v, 1, Tensor::from(std::vector<int64_t>{0, 0, 1, 1}, {4}, test_device()));
  expect_near("output", matmul(attention_probabilities(x.q, x.k, options), v), Doubles(attention(x.q, x.k, x.v, options)), 4e-6);
}

TEST(Probabilities, can_be_limited_to_heads_and_rows) {
  const Sizes z{2, 4, 2, 20, 33, 7, 3};
  const Inputs x(z);
  const AttentionOptions options{.terms = {RelativeBias{normal_input({4, 9}, 5)}}};
  const std::vector<int64_t> heads{3, 0}, rows{19, 2, 3, 4, 2};
  const Tensor all = attention_probabilities(x.q, x.k, options), some = attention_probabilities(x.q, x.k, options, heads, rows);
  ASSERT_EQ(some.shape(), (Shape{2, 2, 5, 33}));
  const Tensor expected =
      index_select(index_select(all, 1, Tensor::from(heads, {2}, test_device())), 2, Tensor::from(rows, {5}, test_device()));
  EXPECT_EQ(some.to_vector<float>(), expected.to_vector<float>());
}

TEST(Probabilities, are_zero_for_masked_rows_and_f32_for_half_precision) {
  const Tensor q = normal_input({1, 1, 3, 4}, 1), k = normal_input({1, 1, 5, 4}, 2);
  for (const Hard hard : {Hard::no, Hard::no_gradient}) {
    const auto map = attention_probabilities(q, k, {.terms = {Causal{-1}}, .hard = hard}).to_vector<float>();
    EXPECT_EQ(std::vector<float>(map.begin(), map.begin() + 6), (std::vector<float>{0, 0, 0, 0, 0, 1}));
  }
  EXPECT_EQ(attention_probabilities(cast(q, DType::bf16), cast(k, DType::bf16)).dtype(), DType::f32);
  EXPECT_EQ(attention_probabilities(q, Tensor::ones({1, 1, 0, 4}, test_device())).shape(), (Shape{1, 1, 3, 0}));
}

TEST(Probabilities, report_invalid_arguments) {
  const Tensor q = Tensor::zeros({1, 4, 3, 8}, test_device());
  expect_error([&] { attention_probabilities(q, q, {}, {4}); }, "attention_probabilities: head 4 of 4");
  expect_error([&] { attention_probabilities(q, q, {}, {}, {-1}); }, "attention_probabilities: row -1 of 3");
}

// Three layers, one of them hard, one with dropout.
Tensor layers(Tensor x, Rng& rng) {
  x = attention(x, x, x, {.terms = {Causal{}}});
  x = attention(x, x, x, {.dropout = 0.2f, .rng = &rng});
  return attention(x, x, x, {.beta = positive_input({2}, 3), .hard = Hard::straight_through});
}

TEST(AttentionTap, changes_neither_outputs_nor_gradients) {
  for (const int64_t N : {5, 40}) {
    const auto run = [&] {
      const Tensor x = normal_input({2, 2, N, 6}, 1).require_grad();
      Rng rng(7);
      const Tensor out = layers(x, rng);
      backward(out, normal_input(out.shape(), 2));
      return std::pair(out.to_vector<float>(), x.grad().to_vector<float>());
    };
    const auto plain = run();
    const AttentionTap tap;
    EXPECT_EQ(run(), plain);
    EXPECT_EQ(tap.calls(), 3);
  }
}

TEST(AttentionTap, records_the_chosen_layers_heads_and_rows) {
  const Tensor x = normal_input({2, 2, 12, 6}, 1), first = attention(x, x, x, {.terms = {Causal{}}});
  Rng rng(7);
  const AttentionTap all;
  {
    const AttentionTap some({.calls = {0, 1}, .heads = {1}, .rows = {11, 3}});
    layers(x, rng);
    ASSERT_EQ(some.looks().size(), 2u);
    EXPECT_EQ(some.looks()[1].call, 1);
    EXPECT_EQ(some.looks()[0].probabilities.to_vector<float>(),
              attention_probabilities(x, x, {.terms = {Causal{}}}, {1}, {11, 3}).to_vector<float>());
    EXPECT_EQ(some.looks()[1].probabilities.to_vector<float>(), attention_probabilities(first, first, {}, {1}, {11, 3}).to_vector<float>());
  }
  ASSERT_EQ(all.looks().size(), 3u);
  EXPECT_EQ(all.looks()[2].probabilities.shape(), (Shape{2, 2, 12, 12}));
  for (float weight : all.looks()[2].probabilities.to_vector<float>()) EXPECT_TRUE(weight == 0 || weight == 1);
}

TEST(AttentionTap, records_attention_in_separable_form) {
  const Tensor q = Tensor::ones({1, 2, 12, 4}, test_device()), v = normal_input({1, 2, 12, 5}, 1);
  const AttentionOptions options{.beta = 0.0f, .terms = {Gaussian2d{positive_input({2}, 2), normal_input({2, 2}, 3), 4}}};
  const AttentionTap tap;
  const Tensor out = attention(q, q, v, options);
  ASSERT_EQ(tap.looks().size(), 1u);
  expect_near("output", out, Doubles(matmul(tap.looks()[0].probabilities, v)), 4e-6);
}

TEST(AttentionTap, records_its_own_thread_until_destroyed) {
  const Tensor x = normal_input({1, 1, 4, 4}, 1);
  EXPECT_EQ(AttentionTap::newest(), nullptr);
  {
    const AttentionTap tap;
    std::thread([&] { attention(x, x, x); }).join();
    EXPECT_EQ(tap.calls(), 0);
    attention(x, x, x);
    EXPECT_EQ(tap.calls(), 1);
  }
  EXPECT_EQ(AttentionTap::newest(), nullptr);
}

TEST(AttentionTap, records_decoding) {
  const Tensor k = normal_input({1, 2, 9, 4}, 1), v = normal_input({1, 2, 9, 4}, 2), q = normal_input({1, 2, 9, 4}, 3);
  const Tensor whole = attention_probabilities(q, k, {.terms = {Causal{}}});
  KeyValueCache cache;
  const AttentionTap tap;
  for (int64_t i = 0; i < 9; ++i) {
    cache.append(slice(k, 2, i, i + 1), slice(v, 2, i, i + 1));
    attention(slice(q, 2, i, i + 1), cache, {.terms = {Causal{}}});
    const Tensor expected = slice(slice(whole, 2, i, i + 1), 3, 0, i + 1);
    expect_near("step", tap.looks().back().probabilities, Doubles(expected), 1e-6);
  }
}

}  // namespace
}  // namespace heed::test
