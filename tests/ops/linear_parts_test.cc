// Layers with the same input, computed as one product, against separate layers. On GPUs only: these tests need HEED_TEST_DEVICE=cuda to
// cover them.
#include "heed/ops/linear_parts.h"

#include <gtest/gtest.h>

#include "heed/attention/attention.h"
#include "heed/core/arrived_gradient.h"
#include "heed/core/bf16_copy.h"
#include "heed/ops/ops.h"
#include "heed/ops/windows.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

Tensor input_of(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return random_normal(shape, 0, 1, rng, test_device());
}

struct Layers {
  Tensor x = input_of({2, 9, 16}, 1);
  Tensors weights = {input_of({8, 16}, 2), input_of({24, 16}, 3), input_of({8, 16}, 4)};
  Tensors biases = {input_of({8}, 5), input_of({24}, 6), input_of({8}, 7)};

  explicit Layers(bool with_bias = true) {
    if (!with_bias) biases = Tensors(3);
    x.require_grad();
    for (Tensors* list : {&weights, &biases})
      for (Tensor& each : *list)
        if (each.defined()) each.require_grad();
  }
  void adjoin() const {
    adjoin_bf16_copies(weights);
    if (biases[0].defined()) adjoin_bf16_copies(biases);
  }
  Tensors one_by_one(const Tensor& narrow) const {
    Tensors out;
    for (size_t i = 0; i < weights.size(); ++i) out.push_back(linear(narrow, weights[i], biases[i]));
    return out;
  }
};

void expect_near_each(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<float> left = a.to_vector<float>(), right = b.to_vector<float>();
  for (size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], tolerance * (1 + std::abs(right[i]))) << i;
}

// The loss weights every result differently. Results that are not `used` get no gradient.
Tensor loss_of(const Tensors& ys, const std::vector<bool>& used) {
  Tensor loss = Tensor::zeros({}, DType::f32, test_device());
  for (size_t i = 0; i < ys.size(); ++i)
    if (used[i]) loss = loss + sum(cast(ys[i], DType::f32) * input_of(ys[i].shape(), 10 + i));
  return loss;
}

TEST(LinearParts, match_separate_layers) {
  for (const bool with_bias : {true, false})
    for (const std::vector<bool>& used : {std::vector<bool>{true, true, true}, {true, false, true}}) {
      const Layers joined(with_bias), single(with_bias);
      joined.adjoin();
      const Tensor narrow = cast(joined.x, DType::bf16);
      const Tensors ys = linear_parts(narrow, joined.weights, joined.biases);
      if (test_device() == kCpu) {
        EXPECT_TRUE(ys.empty());
        continue;
      }
      ASSERT_EQ(ys.size(), 3U);
      EXPECT_TRUE(ys[0].shares_data_with(ys[2]));
      const Tensors expected = single.one_by_one(cast(single.x, DType::bf16));
      for (size_t i = 0; i < ys.size(); ++i) expect_near_each(ys[i], expected[i], 0.01);
      backward(loss_of(ys, used));
      backward(loss_of(expected, used));
      expect_near_each(joined.x.grad(), single.x.grad(), 0.03);
      for (size_t i = 0; i < ys.size(); ++i) {
        const auto zeros_unless_used = [&](const Tensor& g, const Tensor& like) {
          return g.defined() ? g : Tensor::zeros(like.shape(), DType::f32, test_device());
        };
        expect_near_each(joined.weights[i].grad(), zeros_unless_used(single.weights[i].grad(), single.weights[i]), 0.02);
        if (with_bias) expect_near_each(joined.biases[i].grad(), zeros_unless_used(single.biases[i].grad(), single.biases[i]), 0.02);
      }
    }
}

TEST(LinearParts, need_adjacent_copies) {
  const Layers apart;
  for (const Tensor& weight : apart.weights) bf16_copy(weight);
  EXPECT_TRUE(linear_parts(cast(apart.x, DType::bf16), apart.weights, apart.biases).empty());
  const Layers wide;
  wide.adjoin();
  EXPECT_TRUE(linear_parts(wide.x, wide.weights, wide.biases).empty());  // f32
}

TEST(LinearParts, attention_writes_their_gradients_to_adjacent_memory) {
  Tensor qkv = input_of({2, 9, 96}, 1);
  qkv.require_grad();
  const Tensors parts = split(qkv, std::vector<int64_t>{32, 32, 32}, 2);
  const auto heads = [](const Tensor& x) { return transpose(reshape(x, {2, 9, 2, 16}), 1, 2); };
  const Tensor out = attention(heads(parts[0]), heads(parts[1]), heads(parts[2]));
  Grads seen;
  for (const Tensor& part : parts) part.on_gradient([&](const Tensor& g) { seen.push_back(g); });
  backward(sum(out * input_of(out.shape(), 2)));
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(joined_windows(seen, 2).defined());
  EXPECT_EQ(qkv.grad().to_vector<float>(), concat(seen, 2).to_vector<float>());
}

// y = f(x) + g(x): the product of f's gradient is added to that of g.
TEST(GradientAccumulation, products_add_to_existing_gradients) {
  Tensor x = input_of({5, 16}, 1), own = input_of({5, 16}, 1), weight = input_of({16, 16}, 2);
  x.require_grad();
  own.require_grad();
  const auto loss = [&](const Tensor& at) {
    const Tensor y = scale(at, 2), a = linear(y, weight), b = linear(y, weight);
    return sum(a * input_of({5, 16}, 3)) + sum(b * input_of({5, 16}, 4)) + sum(y * y);
  };
  backward(loss(x));
  const Tensor y = scale(own, 2), ones = input_of({5, 16}, 3) + input_of({5, 16}, 4);
  backward(sum(linear(y, weight) * ones) + sum(y * y));
  expect_near_each(x.grad(), own.grad(), 1e-4);
}

}  // namespace
}  // namespace heed::test
