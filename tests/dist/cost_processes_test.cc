// The predicted cost of a step in several processes.
#include "heed/models/cost_processes.h"

#include <gtest/gtest.h>

namespace heed::test {
namespace {

ModelCost some_cost() {
  ModelCost cost;
  cost.size.batch = 64;
  cost.learned = 1'000'000;
  cost.total.training_multiply_adds = 500'000'000'000;  // 10^12 operations
  return cost;
}

TEST(CostOfProcesses, of_one_process_is_its_arithmetic) {
  const ProcessCost one = cost_in_processes(some_cost(), {.processes = 1, .bytes_per_second = 1e9, .latency = 1e-3, .flops = 1e12});
  EXPECT_DOUBLE_EQ(one.step, 1);
  EXPECT_DOUBLE_EQ(one.efficiency, 1);
  EXPECT_EQ(one.bytes_sent, 0);
  EXPECT_EQ(one.state_bytes, 8'000'000);
}

TEST(CostOfProcesses, adds_messages_and_bytes) {
  ProcessOptions options{.processes = 4, .bytes_per_second = 1e9, .latency = 1e-3, .flops = 1e12};
  const ProcessCost four = cost_in_processes(some_cost(), options);
  EXPECT_DOUBLE_EQ(four.compute, 0.25);
  EXPECT_DOUBLE_EQ(four.bytes_sent, 6e6);  // 2 x 4 MB x 3/4
  EXPECT_DOUBLE_EQ(four.messages, 6);
  EXPECT_DOUBLE_EQ(four.fixed_tree, 0.006 + 0.006);
  EXPECT_DOUBLE_EQ(four.ring, four.fixed_tree);
  EXPECT_DOUBLE_EQ(four.tree, 2 * 2 * (0.001 + 0.004));
  EXPECT_DOUBLE_EQ(four.step, 0.262);
  EXPECT_DOUBLE_EQ(four.efficiency, 0.25 / 0.262);
  EXPECT_LT(four.overlapped, four.step);
  options.shard_optimizer = true;
  const ProcessCost sharded = cost_in_processes(some_cost(), options);
  EXPECT_EQ(sharded.state_bytes, 2'000'000);
  EXPECT_DOUBLE_EQ(sharded.fixed_tree, 1.5 * four.fixed_tree);
}

// 64 items in 48 processes: some have two, and the others wait for them.
TEST(CostOfProcesses, counts_the_largest_share) {
  const ProcessCost cost = cost_in_processes(some_cost(), {.processes = 48, .bytes_per_second = 1e30, .latency = 0, .flops = 1e12});
  EXPECT_DOUBLE_EQ(cost.compute, 2.0 / 64);
  EXPECT_NEAR(cost.efficiency, 64.0 / 96, 1e-9);
}

}  // namespace
}  // namespace heed::test
