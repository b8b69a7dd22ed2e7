// bf16 copies of weights: always equal to the rounded weight, whichever function changed the weight.
#include "heed/core/bf16_copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "heed/core/copy.h"
#include "heed/core/parallel.h"
#include "heed/core/set_gradient.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

Tensor drawn(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return random_normal(shape, 0, 1, rng, test_device());
}

void expect_up_to_date(const Tensor& weight) {
  const Tensor copy = kept_bf16_copy(weight);
  ASSERT_TRUE(copy.defined());
  EXPECT_EQ(copy.dtype(), DType::bf16);
  EXPECT_EQ(copy.to_vector<float>(), converted(weight, DType::bf16).to_vector<float>());
}

TEST(Bf16Copy, is_updated_by_every_write) {
  Tensor weight = drawn({37, 21}, 1);
  EXPECT_FALSE(kept_bf16_copy(weight).defined());
  bf16_copy(weight);
  expect_up_to_date(weight);
  copy_into(drawn({37, 21}, 2), weight);
  expect_up_to_date(weight);
  copy_into(drawn({37, 5}, 3), slice(weight, 1, 7, 12));
  expect_up_to_date(weight);
  copy_into(drawn({37, 21}, 4).to(kCpu), weight);
  expect_up_to_date(weight);
  accumulate(weight, drawn({37, 21}, 5));
  expect_up_to_date(weight);
  const Tensor other = drawn({37, 21}, 6);
  swap_values(other, weight);
  expect_up_to_date(weight);
  EXPECT_FALSE(kept_bf16_copy(other).defined());
}

TEST(Bf16Copy, parts_and_shapes_of_a_weight_share_its_copy) {
  const Tensor weight = drawn({6, 8}, 1), copy = bf16_copy(weight);
  const Tensor rows = bf16_copy(slice(weight, 0, 2, 4)), flat = bf16_copy(reshape(weight, {48}));
  EXPECT_TRUE(rows.shares_data_with(copy) && flat.shares_data_with(copy));
  EXPECT_EQ(rows.to_vector<float>(), slice(copy, 0, 2, 4).to_vector<float>());
}

TEST(Bf16Copy, is_freed_with_the_weight) {
  const int64_t before = memory_use(test_device()).in_use;
  {
    const Tensor weight = drawn({100, 100}, 1);
    bf16_copy(weight);
    EXPECT_GE(memory_use(test_device()).in_use, before + 60000);
  }
  EXPECT_EQ(memory_use(test_device()).in_use, before);
}

TEST(Bf16Copy, copies_of_several_weights_are_adjacent) {
  const Tensors parts{drawn({4, 10}, 1), drawn({3, 10}, 2), drawn({5, 10}, 3)};
  adjoin_bf16_copies(parts);
  bf16_copy(parts[1]);  // the first use creates all copies
  for (const Tensor& part : parts) expect_up_to_date(part);
  const Tensor joined = joined_bf16_copy(parts);
  ASSERT_TRUE(joined.defined());
  EXPECT_EQ(joined.shape(), (Shape{12, 10}));
  EXPECT_EQ(joined.to_vector<float>(), converted(concat(parts, 0), DType::bf16).to_vector<float>());
  EXPECT_TRUE(joined_bf16_copy({parts[1], parts[2]}).defined());
  EXPECT_FALSE(joined_bf16_copy({parts[0], parts[2]}).defined());
  copy_into(drawn({5, 10}, 4), parts[2]);
  EXPECT_EQ(joined.to_vector<float>(), converted(concat(parts, 0), DType::bf16).to_vector<float>());
}

TEST(Bf16Copy, accepts_a_repeated_weight_among_adjacent_ones) {
  const Tensor weight = drawn({4, 10}, 1), other = drawn({3, 10}, 2);
  adjoin_bf16_copies({weight, other, weight});
  for (const Tensor& part : {weight, other}) {
    bf16_copy(part);
    expect_up_to_date(part);
  }
  EXPECT_FALSE(joined_bf16_copy({weight, other, weight}).defined());
}

// Copying a large weight waits for the tasks of the other thread, which free memory. Freeing memory also drops its copies.
TEST(Bf16Copy, is_created_while_another_thread_allocates) {
  std::atomic<bool> ending{false};
  std::thread other([&] {
    while (!ending) {
      parallel_tasks(64, [](int64_t) { Tensor::empty({100}, kCpu); });
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 20; ++i) {
    const Tensor weight = Tensor::full({1000, 300}, i, DType::f32, kCpu);
    bf16_copy(weight);
    EXPECT_TRUE(kept_bf16_copy(weight).defined());
  }
  ending = true;
  other.join();
}

TEST(Bf16Copy, is_shared_by_concurrent_threads) {
  const Tensor weight = Tensor::full({1000, 300}, 3, DType::f32, kCpu);
  Tensors found(4);
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (Tensor& each : found) threads.emplace_back([&] { each = bf16_copy(weight); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& each : found) EXPECT_TRUE(each.shares_data_with(found[0]));
  EXPECT_EQ(found[0].to_vector<float>(), std::vector<float>(300000, 3.0f));
}

TEST(Bf16Copy, is_updated_by_optimizers) {
  for (const bool adam : {false, true})
    for (const int64_t odd : {0, 1, 3}) {  // elements before the parameter in its memory, so that its copy is not aligned
      const Tensor whole = drawn({5000 + odd}, 1);
      Tensor weight = slice(whole, 0, odd, 5000 + odd), bias = drawn({7}, 2);
      bf16_copy(whole);
      weight.require_grad();
      bias.require_grad();
      Sgd sgd({{{weight, bias}, 0.1f}}, {.momentum = 0.9f});
      Adam adamw({{{weight, bias}, 0.1f}}, {});
      for (uint64_t step = 0; step < 3; ++step) {
        set_gradient(weight, drawn({5000}, 10 + step));
        set_gradient(bias, drawn({7}, 20 + step));
        adam ? adamw.step(0.05f) : sgd.step(0.05f);
        expect_up_to_date(whole);
      }
      EXPECT_FALSE(kept_bf16_copy(bias).defined());
    }
}

TEST(Bf16Copy, gives_the_same_bits_in_products) {
  const Tensor x = converted(drawn({19, 24}, 1), DType::bf16), bias = drawn({40}, 3);
  Tensor weight = drawn({40, 24}, 2), leaf = drawn({19, 24}, 1);
  const Tensor wanted = linear(x, weight, bias);  // on the CPU, the product rounds a weight that takes no gradient
  weight.require_grad();
  leaf.require_grad();
  const Tensor y = linear(cast(leaf, DType::bf16), weight, bias);
  expect_up_to_date(weight);
  EXPECT_EQ(y.to_vector<float>(), wanted.to_vector<float>());
  backward(sum(y));
  EXPECT_EQ(leaf.grad().shape(), (Shape{19, 24}));
}

}  // namespace
}  // namespace heed::test
