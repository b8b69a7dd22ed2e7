// The thread pool: every task runs once for any number of threads; errors and nested calls.
#include "heed/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "heed/core/check.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"

namespace heed {
namespace {

class Threads : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    before_ = thread_count();
    set_thread_count(GetParam());
  }
  void TearDown() override { set_thread_count(before_); }
  int before_ = 1;
};

TEST_P(Threads, run_every_task_once) {
  for (int64_t tasks : {0, 1, 2, 3, 100, 5000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(tasks));
    parallel_tasks(tasks, [&](int64_t task) { seen[static_cast<size_t>(task)].fetch_add(1); });
    for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
  }
}

TEST_P(Threads, rethrow_the_first_error_and_remain_usable) {
  for (int round = 0; round < 20; ++round)
    expect_error([] { parallel_tasks(50, [](int64_t task) { check(task != 17, "task ", task); }); }, "task 17");
  std::atomic<int64_t> total{0};
  parallel_for(1000, 7, [&](int64_t begin, int64_t end) { total += end - begin; });
  EXPECT_EQ(total.load(), 1000);
}

TEST_P(Threads, support_nested_calls) {
  std::atomic<int> total{0};
  parallel_tasks(8, [&](int64_t) { parallel_tasks(8, [&](int64_t) { total.fetch_add(1); }); });
  EXPECT_EQ(total.load(), 64);
}

TEST_P(Threads, support_concurrent_callers) {
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) parallel_tasks(10, [&](int64_t) { total.fetch_add(1); });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4000);
}

TEST_P(Threads, flush_subnormals_to_zero) {
  std::atomic<int> kept{0};
  volatile float tiny = 1e-30f;
  parallel_tasks(64, [&](int64_t) {
    if (tiny * 1e-10f != 0) kept.fetch_add(1);
  });
  EXPECT_EQ(kept.load(), 0);
  EXPECT_NE(tiny * 1e-10f, 0.0f);  // the arithmetic of the calling thread is unchanged
}

INSTANTIATE_TEST_SUITE_P(core, Threads, testing::Values(1, 2, 7));

TEST(Threads, refuse_invalid_counts) {
  expect_error([] { set_thread_count(0); }, "expected 1 to 1024");
}

// Shapes large enough for many tasks; the test cases of single ops are small.
TEST(Determinism, a_training_step_is_bit_equal_for_1_2_and_7_threads) {
  const auto step = [](int threads) {
    set_thread_count(threads);
    Rng rng(11);
    const Tensor x = random_normal({300, 257}, 0, 1, rng, kCpu), w1 = random_normal({1030, 257}, 0, 0.1f, rng, kCpu).require_grad(),
                 b1 = random_normal({1030}, 0, 1, rng, kCpu).require_grad(),
                 w2 = random_normal({401, 1030}, 0, 0.1f, rng, kCpu).require_grad(), n1 = Tensor::ones({1030}, kCpu).require_grad(),
                 n2 = Tensor::zeros({1030}, kCpu).require_grad();
    std::vector<int64_t> targets(300);
    for (size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int64_t>(i * 7 % 401);
    const Tensor h = dropout(layer_norm(linear(x, w1, b1, Activation::gelu), n1, n2), 0.1f, rng);
    const Tensor loss = cross_entropy(softmax(linear(h, w2)), Tensor::from(targets, {300}, kCpu));
    backward(loss);
    std::vector<std::vector<float>> numbers{loss.to_vector<float>()};
    for (const Tensor& p : {w1, b1, w2, n1, n2}) numbers.push_back(p.grad().to_vector<float>());
    return numbers;
  };
  const int before = thread_count();
  const auto one = step(1), two = step(2), seven = step(7);
  set_thread_count(before);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one, seven);
}

}  // namespace
}  // namespace heed
