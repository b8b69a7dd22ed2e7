// Few queries with many keys, against the reference in double and against the kernel for blocks of queries.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/attention/work.h"
#include "heed/core/parallel.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"

namespace heed::test {
namespace {

float default_beta(const Sizes& z) { return 1 / std::sqrt(static_cast<float>(z.D)); }

AttentionPlan plan_of(const Sizes& z, const std::vector<Subject>& subjects) {
  AttentionPlan plan{.sizes = {z.B, z.H, z.G, z.N, z.M, z.D, z.E}, .beta = default_beta(z)};
  for (const Subject& subject : subjects) plan.terms.push_back(checked(subject.term, plan.sizes, test_device()));
  return plan;
}

using Forward = Tensor (*)(const AttentionPlan&, const Tensor&, const Tensor&, const Tensor&, SoftmaxRows&);

// The output and what is saved for backward. Infinities, which mean that every key is masked, are replaced by a number to compare.
Tensors results(Forward forward, const AttentionPlan& plan, const Inputs& x) {
  SoftmaxRows rows;
  const Tensor out = forward(plan, x.q, x.k, x.v, rows);
  const Tensor kept = plan.hard ? rows.peak : rows.log_sum;
  std::vector<float> numbers = kept.to_vector<float>();
  for (float& number : numbers)
    if (std::isinf(number)) number = std::copysign(99.0f, number);
  return {out, Tensor::from(numbers, kept.shape(), test_device())};
}

void check_plan(const AttentionPlan& plan, const Sizes& z) {
  const Inputs x(z);
  const Tensors got = results(forward_of_few_queries, plan, x), expected = results(forward_in_blocks, plan, x);
  expect_near("output", got[0], Doubles(expected[0]), 2e-6);
  expect_near("rows", got[1], Doubles(expected[1]), 1e-6);
  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    const Tensors again = results(forward_of_few_queries, plan, x);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].to_vector<float>(), again[i].to_vector<float>()) << other << " threads";
  }
  set_thread_count(threads);
}

// Sizes that are not multiples of vectors, blocks and chunks.
const Sizes kFewQueriesSizes[] = {{1, 1, 1, 1, 1, 1, 1},      {2, 2, 1, 5, 7, 3, 2},     {1, 6, 2, 3, 523, 17, 33},
                                  {1, 5, 5, 1, 1031, 64, 64}, {1, 4, 1, 2, 2053, 8, 5},  {1, 1, 1, 8, 4099, 16, 48},
                                  {3, 3, 3, 7, 65, 31, 1},    {1, 2, 1, 4, 70, 1500, 20}};

TEST(FewQueries, match_the_reference) {
  for (const Sizes& z : kFewQueriesSizes) {
    const Inputs x(z);
    SoftmaxRows rows;
    const Tensor out = forward_of_few_queries(plan_of(z, {}), x.q, x.k, x.v, rows);
    const Doubles g({z.B, z.H, z.N, z.E});
    expect_near("output", out, reference(z, default_beta(z), {}, {Doubles(x.q), Doubles(x.k), Doubles(x.v)}, g).out, 2e-6);
  }
}

TEST(FewQueries, match_blocks_for_every_term) {
  for (const Sizes& z : {Sizes{2, 4, 2, 3, 67, 5, 3}, Sizes{1, 2, 1, 8, 1153, 7, 18}})
    for (const Subject& subject : every_term(z)) {
      SCOPED_TRACE(subject.name);
      AttentionPlan plan = plan_of(z, {subject});
      check_plan(plan, z);
      plan.dropout = 0.3f;
      check_plan(plan, z);
      plan.hard = true;
      check_plan(plan, z);
      plan.dropout = 0;
      check_plan(plan, z);
    }
}

TEST(FewQueries, match_blocks_for_every_size) {
  for (const Sizes& z : kFewQueriesSizes) {
    AttentionPlan plan = plan_of(z, {});
    check_plan(plan, z);
    plan.beta = 0;
    check_plan(plan, z);
  }
}

TEST(FewQueries, support_masks_that_differ_between_heads) {
  const Sizes z{1, 4, 1, 2, 1100, 6, 10};
  std::vector<uint8_t> keep(static_cast<size_t>(z.H * z.M));
  for (int64_t h = 0; h < z.H; ++h)
    for (int64_t j = 0; j < z.M; ++j) keep[static_cast<size_t>(h * z.M + j)] = h == 3 ? 0 : j / 300 == h;
  const Tensor mask = cast(Tensor::from(keep, {1, z.H, 1, z.M}, test_device()), DType::boolean);
  AttentionPlan plan = plan_of(z, {{"mask", Mask{mask}, {}}});
  check_plan(plan, z);
  plan.hard = true;
  check_plan(plan, z);
}

TEST(FewQueries, have_correct_gradients) {
  const Sizes z{2, 4, 2, 3, 37, 5, 3};
  for (const Subject& subject : every_term(z)) {
    SCOPED_TRACE(subject.name);
    Inputs x(z);
    for (Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->require_grad();
    const Tensor g = normal_input({z.B, z.H, z.N, z.E}, 4);
    const Tensors parameters = parameters_of(subject.term);
    for (const Tensor& p : parameters) p.zero_grad();
    backward(attention(x.q, x.k, x.v, {{}, {subject.term}}), g);
    const Expected e = reference(z, default_beta(z), {subject}, {Doubles(x.q), Doubles(x.k), Doubles(x.v)}, Doubles(g));
    expect_near("dq", x.q.grad(), e.dq, 1e-4);
    expect_near("dk", x.k.grad(), e.dk, 1e-4);
    expect_near("dv", x.v.grad(), e.dv, 1e-4);
    for (size_t i = 0; i < parameters.size(); ++i) expect_near("parameter", parameters[i].grad(), e.parameters[0][i], 1e-4);
  }
}

TEST(FewQueries, read_strided_keys_without_a_copy) {
  const Sizes z{2, 4, 2, 2, 1500, 16, 24};
  const Inputs x(z);
  // The layout of a projection.
  const auto tokens_first = [](const Tensor& y) { return transpose(contiguous(transpose(y, 1, 2)), 1, 2); };
  const Tensor k = tokens_first(x.k), v = tokens_first(x.v), dense = attention(x.q, x.k, x.v);
  ASSERT_FALSE(k.is_contiguous());
  reset_peak_memory(kCpu);
  const int64_t start = memory_use(kCpu).in_use;
  const Tensor out = attention(x.q, k, v);
  EXPECT_LT(memory_use(kCpu).peak - start, k.count() * static_cast<int64_t>(sizeof(float)) / 4);
  EXPECT_EQ(out.to_vector<float>(), dense.to_vector<float>());
}

}  // namespace
}  // namespace heed::test
