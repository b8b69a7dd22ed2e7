#include "heed/models/cost_processes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "heed/dist/buckets.h"

namespace heed {

ProcessCost cost_in_processes(const ModelCost& cost, const ProcessOptions& options) {
  const auto P = static_cast<double>(options.processes), items = static_cast<double>(cost.size.batch);
  const double bytes = 4.0 * static_cast<double>(cost.learned), work = 2.0 * static_cast<double>(cost.total.training_multiply_adds);
  const double alpha = options.latency, beta = options.bytes_per_second;
  ProcessCost out;
  out.compute = work * std::ceil(items / P) / items / options.flops;
  out.serial = out.step = out.compute;
  out.efficiency = work / options.flops / P / out.step;
  out.gradient_bytes = static_cast<int64_t>(bytes);
  out.state_bytes = static_cast<int64_t>(bytes * static_cast<double>(options.state_values) / (options.shard_optimizer ? P : 1));
  if (options.processes == 1) return out;

  // Slices of the gradients to their owners and sums back, bucket by bucket; updated weights once more if the optimizer is sharded.
  const double buckets = std::ceil(bytes / static_cast<double>(kBucketBytes)), share = bytes * (P - 1) / P;
  const double gradients = 2 * (P - 1) * buckets * alpha + 2 * share / beta;
  const double weights = options.shard_optimizer ? (P - 1) * buckets * alpha + share / beta : 0;
  out.bytes_sent = (options.shard_optimizer ? 3 : 2) * share;
  out.messages = (options.shard_optimizer ? 3 : 2) * buckets * (P - 1);
  out.fixed_tree = gradients + weights;
  out.ring = 2 * (P - 1) * alpha + 2 * share / beta;
  out.tree = 2 * std::ceil(std::log2(P)) * (alpha + bytes / beta);
  out.serial = out.compute + out.fixed_tree;
  // Backward is two thirds of the work. The last bucket is complete when it ends.
  out.step = out.compute + std::max(gradients - out.compute * 2 / 3, gradients / buckets) + weights;
  out.efficiency = work / options.flops / P / out.step;
  // Partial sums of the tree that wait for their neighbour, and the gradients of the last shard. For the buckets in flight: a copy in the
  // order of slices, the received data, and the sum.
  const auto own = static_cast<uint64_t>(std::max<int64_t>((options.shards + options.processes - 1) / options.processes, 1));
  const double in_flight = 3 * std::min(bytes, static_cast<double>(kBucketBytes));
  out.gradient_bytes = static_cast<int64_t>(bytes * static_cast<double>(std::bit_width(own)) + in_flight);
  return out;
}

}  // namespace heed
