// The work that ops count against formulas, forward and backward, with and without masks.
#include "heed/core/work_count.h"

#include <gtest/gtest.h>

#include <functional>

#include "heed/attention/attention.h"
#include "heed/attention/channel_attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/core/parallel.h"
#include "heed/ops/ops.h"
#include "heed/ops/packed_weight.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

Tensor values(const Shape& shape, bool learned = false) {
  Rng rng(7);
  Tensor out = random_normal(shape, 0, 1, rng, test_device());
  if (learned) out.require_grad();
  return out;
}

int64_t counted(const std::function<void()>& work) {
  const WorkCount count;
  work();
  return count.multiply_adds();
}

// Of compute() and of its gradients.
std::pair<int64_t, int64_t> forward_backward(const std::function<Tensor()>& compute) {
  Tensor out;
  const int64_t forward = counted([&] { out = sum(compute()); });
  return {forward, counted([&] { backward(out); })};
}
using Pair = std::pair<int64_t, int64_t>;

TEST(WorkCount, counts_linear_layers_on_every_path) {
  for (const int64_t rows : {1, 5, 70, 700}) {  // one row, sgemm, panels
    const Tensor x = values({rows, 24}, true), w = values({40, 24}, true), b = values({40}, true);
    EXPECT_EQ(forward_backward([&] { return linear(x, w, b, Activation::gelu); }), Pair(rows * 24 * 40, 2 * rows * 24 * 40));
    const Tensor input = values({rows, 24});  // takes no gradient
    EXPECT_EQ(forward_backward([&] { return linear(input, w, b); }), Pair(rows * 24 * 40, rows * 24 * 40));
    for (const WeightForm form : {WeightForm::panels, WeightForm::bytes}) {
      const PackedWeight packed({w.detach()}, form);
      EXPECT_EQ(counted([&] { packed(input, {}); }), rows * 24 * 40);
    }
  }
}

TEST(WorkCount, counts_products_and_losses) {
  const Tensor a = values({2, 3, 5, 7}, true), b = values({3, 7, 4}, true);
  EXPECT_EQ(forward_backward([&] { return matmul(a, b); }), Pair(6 * 5 * 7 * 4, 2 * 6 * 5 * 7 * 4));
  const Tensor x = values({600, 16}, true), w = values({30, 16}, true), targets = Tensor::zeros({600}, DType::i64, test_device());
  const auto [forward, back] = forward_backward([&] { return linear_cross_entropy(x, w, {}, targets); });
  EXPECT_EQ(forward + back, 3 * 600 * 16 * 30);  // forward computes the gradients, too
}

TEST(WorkCount, counts_convolutions) {
  const Tensor x = values({2, 6, 9, 9}, true), w = values({8, 3, 3, 3}, true), b = values({8}, true);
  const int64_t once = 2 * 9 * 9 * 8 * 3 * 3 * 3;
  EXPECT_EQ(forward_backward([&] { return conv2d(x, w, b, {.padding = {1, 1}, .groups = 2}); }), Pair(once, 2 * once));
  const Tensor patches = values({8, 6, 3, 3}, true);  // a linear layer in this case
  EXPECT_EQ(counted([&] { conv2d(x, patches, {}, {.stride = {3, 3}}); }), 2 * 9 * 8 * 6 * 9);
}

TEST(WorkCount, counts_unmasked_pairs_of_attention) {
  const int64_t B = 2, H = 4, G = 2, N = 21, D = 10, E = 6;
  const Tensor q = values({B, H, N, D}, true), k = values({B, G, N, D}, true), v = values({B, G, N, E}, true);
  const auto with = [&](std::vector<Term> terms, Beta beta = {}) {
    return forward_backward([&] { return attention(q, k, v, {.beta = beta, .terms = terms}); });
  };
  const auto expected = [&](int64_t pairs) { return Pair(pairs * (D + E), pairs * (3 * D + 2 * E)); };
  EXPECT_EQ(with({}), expected(B * H * N * N));
  EXPECT_EQ(with({Causal{}}), expected(B * H * N * (N + 1) / 2));
  EXPECT_EQ(with({Window{.before = 2, .after = 2}}), expected(B * H * (5 * N - 6)));
  EXPECT_EQ(with({KeyLengths{Tensor::from(std::vector<int64_t>{3, 21}, {2}, test_device())}}),
            expected(test_device() == kCpu ? H * N * 24 : B * H * N * N));             // a GPU does not read lengths back
  EXPECT_EQ(with({Causal{}, Alibi{values({H})}}), expected(B * H * N * (N + 1) / 2));  // biases mask nothing
  EXPECT_EQ(with({}, 0.0f), Pair(B * H * N * N * E, B * H * N * N * 2 * E));
  const Tensor last = values({B, H, 1, D});  // after a cache
  EXPECT_EQ(counted([&] { attention(last, k, v, {.terms = {Causal{}}, .first_query = 8}); }), B * H * 9 * (D + E));
}

TEST(WorkCount, counts_cheaper_kinds_of_attention) {
  const int64_t B = 2, H = 3, N = 16, D = 5, E = 7;
  const Tensor q = values({B, H, N, D}, true), k = values({B, H, N, D}, true), v = values({B, H, N, E}, true);
  const int64_t kernel = B * H * N * (2 * D * E + D);
  EXPECT_EQ(forward_backward([&] { return linear_attention(q, k, v); }), Pair(kernel, 2 * kernel));
  EXPECT_EQ(counted([&] { linear_attention(q, k, v, {.quadratic = true}); }), B * H * N * N * (D + E));
  EXPECT_EQ(counted([&] { channel_attention(q, k, values({B, H, N, D})); }), 2 * B * H * N * D * D);
  const Tensor alpha = values({H}, true), center = values({H, 2}, true);
  const auto gaussian = [&] {
    return attention(q.detach(), k.detach(), v, {.beta = 0.0f, .terms = {Gaussian2d{.alpha = alpha, .center = center, .width = 4}}});
  };
  EXPECT_EQ(forward_backward(gaussian), Pair(B * H * N * 8 * E, B * H * N * 20 * E));
}

TEST(WorkCount, counts_only_while_a_counter_exists) {
  const Tensor a = values({8, 8});
  const WorkCount outer;
  {
    const WorkCount inner;
    matmul(a, a);
    EXPECT_EQ(inner.multiply_adds(), 512);
  }
  matmul(a, a);
  EXPECT_EQ(outer.multiply_adds(), 1024);
}

TEST(WorkCount, is_off_by_default) {
  EXPECT_FALSE(counting_work());
  const int64_t before = work::multiply_adds;
  matmul(values({8, 8}), values({8, 8}));
  EXPECT_EQ(work::multiply_adds, before);
}

TEST(WorkCount, counts_the_work_of_all_threads) {
  const Tensor a = values({16, 16});
  const WorkCount count;
  parallel_tasks(64, [&](int64_t) { matmul(a, a); });
  EXPECT_EQ(count.multiply_adds(), 64 * 16 * 16 * 16);
}

}  // namespace
}  // namespace heed::test
