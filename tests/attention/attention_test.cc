// Attention against a plain double reference: every term alone and every pair of terms, odd shapes, grouped heads.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "heed/core/parallel.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

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
