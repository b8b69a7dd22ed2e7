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

TEST(ProcessCost, one_process_costs_only_its_arithmetic) {
  const ProcessCost one = cost_in_processes(some_cost(), {.processes = 1, .bytes_per_second = 1e9, .latency = 1e-3, .flops = 1e12});
  EXPECT_DOUBLE_EQ(one.step, 1);
  EXPECT_DOUBLE_EQ(one.efficiency, 1);
  EXPECT_EQ(one.bytes_sent, 0);
  EXPECT_EQ(one.state_bytes, 8'000'000);
}

TEST(ProcessCost, includes_messages_and_bytes) {
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
  EXPECT_DOUBLE_EQ(four.serial, 0.262);  // one bucket, complete at the end of backward
  options.shard_optimizer = true;
  const ProcessCost sharded = cost_in_processes(some_cost(), options);
  EXPECT_EQ(sharded.state_bytes, 2'000'000);
  EXPECT_DOUBLE_EQ(sharded.fixed_tree, 1.5 * four.fixed_tree);
}

// Ten buckets: nine of them are sent during backward, if it lasts long enough.
TEST(ProcessCost, overlaps_buckets_with_backward) {
  ModelCost cost = some_cost();
  cost.learned = 10 << 21;
  ProcessOptions options{.processes = 2, .bytes_per_second = 1e9, .latency = 1e-3, .flops = 1e12};
  const ProcessCost slow = cost_in_processes(cost, options);
  const double gradients = 20e-3 + 10 * (8 << 20) / 1e9;
  EXPECT_DOUBLE_EQ(slow.messages, 20);
  EXPECT_DOUBLE_EQ(slow.serial, 0.5 + gradients);
  EXPECT_DOUBLE_EQ(slow.step, 0.5 + gradients / 10);
  EXPECT_EQ(slow.gradient_bytes, (10 * 3 + 3) * (8 << 20));  // 4 shards: two partial sums and the gradients of the last shard
  options.flops = 1e13;
  EXPECT_DOUBLE_EQ(cost_in_processes(cost, options).step, 0.05 + (gradients - 0.05 * 2 / 3));
}

// 64 items in 48 processes: some have two, and the others wait for them.
TEST(ProcessCost, is_determined_by_the_largest_share) {
  const ProcessCost cost = cost_in_processes(some_cost(), {.processes = 48, .bytes_per_second = 1e30, .latency = 0, .flops = 1e12});
  EXPECT_DOUBLE_EQ(cost.compute, 2.0 / 64);
  EXPECT_NEAR(cost.efficiency, 64.0 / 96, 1e-9);
}

}  // namespace
}  // namespace heed::test
