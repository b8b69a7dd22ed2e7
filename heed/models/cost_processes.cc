#include "heed/models/cost_processes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace heed {

ProcessCost cost_in_processes(const ModelCost& cost, const ProcessOptions& options) {
  const auto P = static_cast<double>(options.processes), items = static_cast<double>(cost.size.batch);
  const double bytes = 4.0 * static_cast<double>(cost.learned), work = 2.0 * static_cast<double>(cost.total.training_multiply_adds);
  const double alpha = options.latency, beta = options.bytes_per_second;
  ProcessCost out;
  out.compute = work * std::ceil(items / P) / items / options.flops;
  out.overlapped = out.step = out.compute;
  out.efficiency = work / options.flops / P / out.step;
  out.gradient_bytes = static_cast<int64_t>(bytes);
  out.state_bytes = static_cast<int64_t>(bytes * static_cast<double>(options.state_values) / (options.shard_optimizer ? P : 1));
  if (options.processes == 1) return out;

  // Slices of the gradient to their owners and sums back; updated weights once more if the optimizer is sharded.
  const double passes = options.shard_optimizer ? 3 : 2;
  out.bytes_sent = passes * bytes * (P - 1) / P;
  out.messages = passes * (P - 1);
  out.fixed_tree = out.messages * alpha + out.bytes_sent / beta;
  out.ring = 2 * (P - 1) * alpha + 2 * bytes * (P - 1) / P / beta;
  out.tree = 2 * std::ceil(std::log2(P)) * (alpha + bytes / beta);
  out.step = out.compute + out.fixed_tree;
  // Backward is two thirds of the work. What arrives after it is at least one message each way.
  out.overlapped = out.compute + std::max(out.fixed_tree - out.compute * 2 / 3, passes * alpha);
  out.efficiency = work / options.flops / P / out.step;
  // Partial sums of the own shards; then the own sum, its copy in the order of slices, what arrives, and the result.
  const auto own = static_cast<uint64_t>(std::max<int64_t>((options.shards + options.processes - 1) / options.processes, 1));
  out.gradient_bytes = static_cast<int64_t>(bytes * static_cast<double>(std::max<int>(std::bit_width(own) + 1, 4)));
  return out;
}

}  // namespace heed
