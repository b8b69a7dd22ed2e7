// Attention against a plain double reference: every term alone and every pair of terms, odd shapes, grouped heads.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "heed/core/isa.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

struct Kind {
  std::optional<float> beta = {};
  Hard hard = Hard::no;
  float dropout = 0;
};

void check_terms(const Sizes& z, const std::vector<Subject>& subjects, const Kind& kind = {}) {
  std::string name = "terms";
  std::vector<Term> terms;
  for (const Subject& subject : subjects) {
    name += " " + subject.name;
    terms.push_back(subject.term);
  }
  SCOPED_TRACE(name);
  const Tensor q = normal_input({z.B, z.H, z.N, z.D}, 1).require_grad(), k = normal_input({z.B, z.G, z.M, z.D}, 2).require_grad(),
               v = normal_input({z.B, z.G, z.M, z.E}, 3).require_grad(), g = normal_input({z.B, z.H, z.N, z.E}, 4);
  const auto options = [&](Rng& rng) { return AttentionOptions{kind.beta, terms, kind.hard, kind.dropout, &rng}; };
  const auto run = [&] {
    for (const Tensor& x : {q, k, v}) x.zero_grad();
    for (const Term& term : terms)
      for (const Tensor& p : parameters_of(term)) p.zero_grad();
    Rng rng(5);
    const Tensor out = attention(q, k, v, options(rng));
    backward(out, g);
    Tensors all{out.detach(), q.grad(), k.grad(), v.grad()};
    for (const Term& term : terms)
      for (const Tensor& p : parameters_of(term)) all.push_back(p.grad());
    return all;
  };
  ReferenceKind plain{.hard = kind.hard != Hard::no, .score_gradient = kind.hard != Hard::no_gradient};
  if (kind.dropout > 0) {  // with the identity as values the output is the weights, which are zero where they were dropped
    std::vector<float> identity(static_cast<size_t>(z.M * z.M));
    for (size_t i = 0; i < identity.size(); i += static_cast<size_t>(z.M) + 1) identity[i] = 1;
    Rng rng(5);
    AttentionOptions soft = options(rng);
    soft.hard = Hard::no;
    const Tensor weights =
        attention(q, k, contiguous(expand(Tensor::from(identity, {1, 1, z.M, z.M}, test_device()), {z.B, z.G, z.M, z.M})), soft).detach();
    plain.factors = Doubles(weights);
    for (double& x : plain.factors.values) x = x == 0 ? 0 : 1 / (1 - static_cast<double>(kind.dropout));
  }
  const Tensors got = run();
  const double b = kind.beta.value_or(1 / std::sqrt(static_cast<float>(z.D)));
  const Expected e = reference(z, b, subjects, {Doubles(q), Doubles(k), Doubles(v)}, Doubles(g), plain);
  expect_near("out", got[0], e.out, 2e-6);
  expect_near("dq", got[1], e.dq, 1e-4);
  expect_near("dk", got[2], e.dk, 1e-4);
  expect_near("dv", got[3], e.dv, 1e-4);
  size_t next = 4;
  for (const Many& parameters : e.parameters)
    for (const Doubles& expected : parameters) expect_near("parameter", got[next++], expected, 1e-4);
  expect_same_for_any_threads(got, run);
}

Subject term_named(const Sizes& z, const std::string& name) {
  for (const Subject& subject : every_term(z))
    if (subject.name == name) return subject;
  throw std::runtime_error("no term " + name);
}

TEST(Attention, matches_the_reference_without_terms) {
  for (const Sizes& z : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 2, 1, 5, 7, 3, 2}, Sizes{1, 2, 2, 97, 13, 17, 33},
                         Sizes{1, 1, 1, 3, 521, 16, 16}, Sizes{1, 4, 2, 101, 259, 5, 7}, Sizes{2, 1, 1, 193, 31, 64, 1}})
    check_terms(z, {});
}

TEST(Attention, matches_the_reference_for_every_pair_of_terms) {
  const Sizes z{2, 2, 1, 19, 23, 5, 3};
  const auto all = every_term(z);
  for (size_t i = 0; i < all.size(); ++i) {
    check_terms(z, {all[i]});
    for (size_t j = i + 1; j < all.size(); ++j) check_terms(z, {all[i], all[j]});
  }
}

TEST(Attention, matches_the_reference_for_every_term_and_size) {
  for (const Sizes& z : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{1, 2, 1, 2, 131, 1, 3}, Sizes{2, 1, 1, 131, 3, 7, 1},
                         Sizes{1, 4, 2, 17, 16, 13, 19}, Sizes{1, 1, 1, 113, 271, 4, 4}})
    for (const Subject& subject : every_term(z)) check_terms(z, {subject});
}

Subject relative_within(const Sizes& z, int64_t reach) {
  const int64_t width = 2 * reach + 1;
  const auto at = [=](int64_t h, int64_t i, int64_t j) { return h * width + std::clamp(j - i, -reach, reach) + reach; };
  return {"relative within " + std::to_string(reach), RelativeBias{normal_input({z.H, width}, 9).require_grad()},
          [=](const Many& p, double s, int64_t, int64_t h, int64_t i, int64_t j) { return s + p[0][at(h, i, j)]; },
          [=](int64_t, int64_t h, int64_t i, int64_t j) {
            return std::vector<Read>{{0, at(h, i, j)}};
          }};
}

// Blocks of scores are initialized with a bias if it is stored in whole rows for them: for all blocks or for some.
TEST(Attention, matches_the_reference_for_blocks_initialized_with_a_bias) {
  for (const Sizes& z : {Sizes{1, 2, 1, 113, 271, 4, 4}, Sizes{2, 2, 2, 100, 600, 16, 8}, Sizes{1, 1, 1, 61, 128, 8, 17}}) {
    check_terms(z, {term_named(z, "column bias"), term_named(z, "lengths")});
    for (const int64_t reach : {z.N + z.M, std::max(z.N, z.M) - 1, z.M - z.M / 6}) {
      const Subject relative = relative_within(z, reach);
      check_terms(z, {relative});
      check_terms(z, {relative}, {.hard = Hard::straight_through});
      check_terms(z, {relative, term_named(z, "soft cap"), term_named(z, "causal")});
      check_terms(z, {term_named(z, "bias"), relative});
    }
  }
}

TEST(Attention, supports_terms_without_content_scores) {
  const Sizes z{1, 2, 2, 19, 19, 4, 3};
  check_terms(z, {term_named(z, "gaussian"), term_named(z, "causal")}, {.beta = 0.0f});
}

TEST(Attention, hard_rows_are_one_hot_with_the_chosen_gradient) {
  for (const Sizes& z : {Sizes{1, 2, 1, 5, 7, 3, 2}, Sizes{1, 1, 1, 99, 300, 4, 5}})
    for (const Hard hard : {Hard::straight_through, Hard::no_gradient}) {
      check_terms(z, {}, {.hard = hard});
      check_terms(z, {term_named(z, "causal"), term_named(z, "relative"), term_named(z, "soft cap")}, {.hard = hard});
    }
}

TEST(Attention, hard_rows_average_ties) {
  const Tensor q = Tensor::from(std::vector<float>{1}, {1, 1, 1, 1}, test_device()),
               k = Tensor::from(std::vector<float>{2, 1, 2}, {1, 1, 3, 1}, test_device()),
               v = Tensor::from(std::vector<float>{10, 20, 40}, {1, 1, 3, 1}, test_device());
  EXPECT_EQ(attention(q, k, v, {.hard = Hard::straight_through}).item(), 25);
}

TEST(Attention, dropout_matches_the_reference_and_keeps_the_mean) {
  const Sizes z{2, 2, 1, 33, 70, 5, 3};
  check_terms(z, {}, {.dropout = 0.3f});
  check_terms({1, 1, 1, 101, 300, 8, 4}, {}, {.dropout = 0.5f});
  check_terms(z, {term_named(z, "soft cap"), term_named(z, "gaussian")}, {.dropout = 0.3f});
  check_terms(z, {}, {.hard = Hard::straight_through, .dropout = 0.3f});
  Rng rng(1);  // equal keys: every weight is 1/1024, so the mean of kept weights is 1
  const Tensor ones = Tensor::ones({1, 1, 1024, 4}, test_device());
  EXPECT_NEAR(mean(attention(ones, ones, ones, {.dropout = 0.25f, .rng = &rng})).item(), 1, 3e-3);
}

TEST(Attention, supports_a_learned_beta_per_head) {
  const Tensor q = normal_input({2, 3, 5, 4}, 1), k = normal_input({2, 3, 7, 4}, 2), v = normal_input({2, 3, 7, 2}, 3);
  const std::vector<float> values{0.3f, 1.0f, -0.7f};
  const Tensor beta = Tensor::from(values, {3}, test_device()).require_grad();
  const Tensor out = attention(q, k, v, {.beta = beta});
  for (int64_t h = 0; h < 3; ++h) {
    const auto head = [&](const Tensor& x) { return slice(x, 1, h, h + 1); };
    const auto one = attention(head(q), head(k), head(v), {.beta = values[static_cast<size_t>(h)]}).to_vector<float>(),
               all = head(out).to_vector<float>();
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], all[i], 1e-6);
  }
  backward(sum(out), {});
  const auto total = [&](float middle) {
    return sum(attention(q, k, v, {.beta = Tensor::from(std::vector<float>{0.3f, middle, -0.7f}, {3}, test_device())})).item();
  };
  EXPECT_NEAR(beta.grad().to_vector<float>()[1], (total(1.01f) - total(0.99f)) / 0.02f, 2e-2);
  EXPECT_NEAR(sum(attention(q, k, v, {.beta = Tensor::ones({1}, test_device())})).item(), sum(attention(q, k, v, {.beta = 1.0f})).item(),
              1e-5);
}

TEST(Attention, accepts_strided_inputs) {
  for (const int64_t D : {32, 5}) {  // the layout of a projection: heads within tokens
    const Tensor tokens = normal_input({2, 19, 3 * D}, 1).require_grad(), g = normal_input({2, 3, 19, D}, 2);
    const auto heads = [&] { return transpose(reshape(tokens, {2, 19, 3, D}), 1, 2); };
    const Tensor strided = attention(heads(), heads(), heads(), {{}, {Causal{}}});
    EXPECT_EQ(strided.strides()[1], D);  // the result has the same layout
    backward(strided, g);
    const Tensor found = tokens.grad();
    tokens.zero_grad();
    const Tensor dense_tokens = contiguous(heads()).require_grad();
    const Tensor dense = attention(dense_tokens, dense_tokens, dense_tokens, {{}, {Causal{}}});
    backward(dense, g);
    EXPECT_EQ(strided.to_vector<float>(), dense.to_vector<float>());
    EXPECT_EQ(transpose(reshape(found, {2, 19, 3, D}), 1, 2).to_vector<float>(), dense_tokens.grad().to_vector<float>());
  }
}

TEST(Attention, fully_masked_rows_are_zero_without_gradient) {
  const Tensor q = normal_input({1, 1, 3, 4}, 1).require_grad(), k = normal_input({1, 1, 5, 4}, 2).require_grad(),
               v = normal_input({1, 1, 5, 4}, 3).require_grad();
  const Tensor out = attention(q, k, v, {{}, {Causal{-1}}});
  backward(out, Tensor::ones(out.shape(), test_device()));
  const auto y = out.to_vector<float>(), dq = q.grad().to_vector<float>();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y[i], 0);
    EXPECT_EQ(dq[i], 0);
  }
  EXPECT_NE(y[4], 0);
}

TEST(Attention, accepts_empty_batches_and_no_keys) {
  const Tensor none = attention(Tensor::ones({1, 1, 2, 4}, test_device()), Tensor::ones({1, 1, 0, 4}, test_device()),
                                Tensor::ones({1, 1, 0, 3}, test_device()));
  EXPECT_EQ(none.to_vector<float>(), std::vector<float>(6, 0.0f));
  EXPECT_EQ(attention(Tensor::ones({0, 1, 2, 4}, test_device()), Tensor::ones({0, 1, 3, 4}, test_device()),
                      Tensor::ones({0, 1, 3, 4}, test_device()))
                .count(),
            0);
  const Tensor q = Tensor::ones({1, 1, 2, 4}, test_device()).require_grad();
  backward(attention(q, Tensor::ones({1, 1, 0, 4}, test_device()), Tensor::ones({1, 1, 0, 4}, test_device())),
           Tensor::ones({1, 1, 2, 4}, test_device()));
  EXPECT_EQ(q.grad().to_vector<float>(), std::vector<float>(8, 0.0f));
}

TEST(Attention, memory_grows_linearly_with_the_length) {
  const Tensor q = normal_input({1, 1, 16384, 64}, 1).require_grad(), k = normal_input({1, 1, 16384, 64}, 2).require_grad(),
               v = normal_input({1, 1, 16384, 64}, 3).require_grad(), g = normal_input({1, 1, 16384, 64}, 4);
  reset_peak_memory(kCpu);
  const int64_t start = memory_use(kCpu).in_use;
  // Without vector instructions all pairs would take minutes; the memory is the same with a window.
  backward(attention(q, k, v, {{}, instruction_set() == "baseline" ? std::vector<Term>{Window{300, 300}} : std::vector<Term>{}}), g);
  const int64_t results = 4 * q.count() * static_cast<int64_t>(sizeof(float));  // the output and three gradients
  EXPECT_LE(memory_use(kCpu).peak - start - results, int64_t{64} << 20);
}

TEST(Attention, reports_invalid_arguments) {
  const Tensor q = Tensor::zeros({1, 4, 3, 8}, test_device()), k = Tensor::zeros({1, 4, 5, 8}, test_device());
  expect_error([&] { attention(q, Tensor::zeros({1, 4, 5, 7}, test_device()), k); }, "queries have 8 numbers, keys 7");
  expect_error(
      [&] {
        attention(q, Tensor::zeros({1, 3, 5, 8}, test_device()), Tensor::zeros({1, 3, 5, 8}, test_device()));
      },
      "4 query heads do not share 3 key heads");
  expect_error([&] { attention(q, k, Tensor::zeros({1, 4, 6, 8}, test_device())); }, "differ in heads or keys");
  expect_error(
      [&] {
        attention(q, k, k, {{}, {RelativeBias{Tensor::zeros({3, 5}, test_device())}}});
      },
      "RelativeBias's table has shape (3, 5), expected (4, 5)");
  expect_error([&] { attention(q, k, k, {{}, {Chunks{0}}}); }, "Chunks of 0");
  expect_error([&] { attention(q, k, k, {{}, {RelativeBias{}}}); }, "RelativeBias has no table");
  expect_error(
      [&] {
        attention(q, k, k, {{}, {RelativeBias{Tensor::zeros({4, 6}, test_device())}}});
      },
      "6 columns, expected an odd number");
  expect_error(
      [&] {
        attention(q, k, k, {{}, {Mask{Tensor::zeros({2, 1, 1, 5}, DType::boolean, test_device())}}});
      },
      "Mask's keep has shape (2, 1, 1, 5), expected one that broadcasts to (1, 4, 3, 5)");
  expect_error([&] { attention(q, k, k, {{}, {SoftCap{-1}}}); }, "SoftCap at -1");
  expect_error([&] { attention(q, k, k, {.beta = Tensor::zeros({3}, test_device())}); }, "beta has shape (3), expected (1) or (4)");
  expect_error([&] { attention(q, k, k, {.dropout = 0.1f}); }, "needs a source of random numbers");
}

}  // namespace
}  // namespace heed::test
