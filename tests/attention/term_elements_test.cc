// The element functions of terms, as CUDA calls them for one float, against the reference. The CPU's functions of blocks are compared with
// the same reference by attention_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/attention/attention_kernels.h"
#include "heed/attention/scalar_terms.h"
#include "heed/core/dry_run.h"
#include "heed/core/work_count.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

using scalar::Keys;

const Sizes kElementSizes{2, 2, 1, 19, 23, 5, 3};

// visit(b, h, i, j) for every score.
template <class Visit>
void for_scores(const Sizes& z, const Visit& visit) {
  for (int64_t b = 0; b < z.B; ++b)
    for (int64_t h = 0; h < z.H; ++h)
      for (int64_t i = 0; i < z.N; ++i)
        for (int64_t j = 0; j < z.M; ++j) visit(b, h, i, j);
}

Term checked_term(const Subject& subject) {
  const Sizes& z = kElementSizes;
  return checked(subject.term, {z.B, z.H, z.G, z.N, z.M, z.D, z.E}, test_device());
}

Many parameters_in_double(const Subject& subject) {
  Many out;
  for (const Tensor& p : parameters_of(subject.term)) out.emplace_back(p);
  return out;
}

TEST(TermElements, scores_match_the_reference) {
  if (test_device() != kCpu) GTEST_SKIP() << "calls the element functions on the host";
  for (const Subject& subject : every_term(kElementSizes)) {
    SCOPED_TRACE(subject.name);
    const Term term = checked_term(subject);
    const TermArgs args = term_args(term);
    const Many parameters = parameters_in_double(subject);
    for_scores(kElementSizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      for (const double s : {0.3, -2.0, static_cast<double>(-INFINITY)}) {
        const double expected = subject.score(parameters, s, b, h, i, j);
        const float got = scalar::term_score(args, static_cast<float>(s), {b, h, i, 0}, j);
        if (std::isinf(expected)) {
          ASSERT_EQ(got, -INFINITY) << i << " " << j;
        } else {
          ASSERT_NEAR(got, expected, 1e-5) << i << " " << j;
        }
        if (s > 0) {
          ASSERT_EQ(scalar::term_keeps(args, {b, h, i, 0}, j), !std::isinf(expected)) << i << " " << j;
        }
      }
    });
  }
}

// ds: the gradient of a score.
double gradient_of_score(int64_t b, int64_t h, int64_t i, int64_t j) { return std::sin(static_cast<double>(b + 3 * h + 7 * i + 11 * j)); }

// Gradients of the scalar parameters of every head, by the element functions; empty for terms without scalar parameters.
template <class T>
std::vector<std::vector<float>> summed_numbers(const T& t) {
  std::vector<std::vector<float>> heads;
  if constexpr (requires { T::sums; })
    for (int64_t h = 0; h < kElementSizes.H; ++h) {
      float sums[T::sums] = {}, totals[T::totals] = {};
      for_scores(kElementSizes, [&](int64_t b, int64_t head, int64_t i, int64_t j) {
        const auto ds = static_cast<float>(gradient_of_score(b, h, i, j));
        if (head == h) scalar::add_gradient(t, sums, ds, {b, h, i, 0}, Keys<float>{j});
      });
      scalar::finish_gradient(t, h, sums, totals);
      heads.emplace_back(totals, totals + T::totals);
    }
  return heads;
}

// The derivative of a term's score with respect to one of its parameters.
double parameter_slope(const Subject& subject, Many& parameters, const Read& read, int64_t b, int64_t h, int64_t i, int64_t j) {
  double& number = parameters[read.which][read.index];
  const double before = number, step = 1e-4;
  number = before + step;
  const double above = subject.score(parameters, 0, b, h, i, j);
  number = before - step;
  const double below = subject.score(parameters, 0, b, h, i, j);
  number = before;
  return (above - below) / (2 * step);
}

TEST(TermElements, gradients_of_scalar_parameters_match_the_reference) {
  if (test_device() != kCpu) GTEST_SKIP() << "calls the element functions on the host";
  int found = 0;
  for (const Subject& subject : every_term(kElementSizes)) {
    SCOPED_TRACE(subject.name);
    const Term term = checked_term(subject);
    const auto got = visit_term(term_args(term), [](const auto& t) { return summed_numbers(t); });
    if (got.empty()) continue;
    ++found;
    Many parameters = parameters_in_double(subject), expected;
    for (const Doubles& p : parameters) expected.emplace_back(p.shape);
    for_scores(kElementSizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      for (const Read& read : subject.reads(b, h, i, j))
        expected[read.which][read.index] += gradient_of_score(b, h, i, j) * parameter_slope(subject, parameters, read, b, h, i, j);
    });
    for (size_t h = 0; h < got.size(); ++h) {
      size_t next = 0;
      for (const Doubles& p : expected)
        for (int64_t n = 0; n < p.size() / kElementSizes.H; ++n, ++next)
          EXPECT_NEAR(got[h][next], p[static_cast<int64_t>(h) * (p.size() / kElementSizes.H) + n], 1e-3 * (1 + std::abs(got[h][next])));
      EXPECT_EQ(next, got[h].size());
    }
  }
  EXPECT_GE(found, 3);
}

// table_entry() gives the entry of a head's table, or of a row of it, that the reference reads.
TEST(TermElements, table_entries_match_the_reference) {
  if (test_device() != kCpu) GTEST_SKIP() << "calls the element functions on the host";
  int found = 0;
  for (const Subject& subject : every_term(kElementSizes)) {
    SCOPED_TRACE(subject.name);
    const Term term = checked_term(subject);
    visit_term(term_args(term), [&]<class T>(const T& t) {
      if constexpr (requires { table_entry(t, 0, 0); }) {
        ++found;
        const Tensor table = parameters_of(subject.term).back();
        const int64_t width = table.count() / kElementSizes.H / table_size(t);
        for_scores(kElementSizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
          for (const Read& read : subject.reads(b, h, i, j))
            if (read.which + 1 == parameters_of(subject.term).size()) {
              ASSERT_EQ(read.index / width, h * table_size(t) + table_entry(t, i, j)) << i << " " << j;
            }
        });
      }
    });
  }
  EXPECT_GE(found, 4);
}

TEST(TermElements, slopes_of_nonlinear_terms_match_the_reference) {
  if (test_device() != kCpu) GTEST_SKIP() << "calls the element functions on the host";
  int found = 0;
  for (const Subject& subject : every_term(kElementSizes))
    visit_term(term_args(checked_term(subject)), [&]<class T>(const T& t) {
      if constexpr (kIsNonlinear<T>) {
        ++found;
        for (const double s : {-4.0, -0.5, 0.0, 0.2, 3.0}) {
          const double above = subject.score({}, s + 1e-4, 0, 0, 0, 0), below = subject.score({}, s - 1e-4, 0, 0, 0, 0);
          EXPECT_NEAR(scalar::slope(t, static_cast<float>(subject.score({}, s, 0, 0, 0, 0))), (above - below) / 2e-4, 1e-4);
        }
        EXPECT_EQ(scalar::slope(t, -INFINITY), 0);
      }
    });
  EXPECT_GE(found, 1);
}

TEST(AttentionKernels, count_work_without_running_in_a_dry_run) {
  const Sizes z{1, 2, 1, 40, 50, 8, 6};
  const auto run = [&](const Inputs& x) {
    const Tensor out = attention(x.q, x.k, x.v, {.terms = {Causal{10}}});
    backward(out, Tensor::ones(out.shape(), test_device()));
    return out;
  };
  Inputs real(z);
  for (Tensor* x : {&real.q, &real.k, &real.v}) x->require_grad();
  const WorkCount counted;
  run(real);
  const int64_t work = counted.multiply_adds();
  EXPECT_GT(work, 0);
  const DryRun dry;
  Inputs none(z);
  for (Tensor* x : {&none.q, &none.k, &none.v}) x->require_grad();
  const WorkCount dry_work;
  const Tensor out = run(none);
  EXPECT_EQ(dry_work.multiply_adds(), work);
  EXPECT_GT(dry.peak(), 0);
  for (const float x : out.to_vector<float>()) EXPECT_EQ(x, 0);
}

TEST(AttentionKernels, refuse_too_many_terms) {
  const Tensor x = normal_input({1, 1, 10, 4});
  AttentionOptions options{.terms = std::vector<Term>(kMaxTerms, Causal{})};
  attention(x, x, x, options);
  options.terms.push_back(Causal{});
  expect_error([&] { attention(x, x, x, options); }, "attention: 9 terms, at most 8");
}

}  // namespace
}  // namespace heed::test
