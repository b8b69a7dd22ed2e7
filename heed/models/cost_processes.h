// The cost of a training step in several processes, by the alpha-beta model: a message of n bytes takes alpha + n / beta seconds.
// docs/scale.md has the formulas and compares them with measurements.
#pragma once

#include "heed/models/cost.h"

namespace heed {

struct ProcessOptions {
  int64_t processes = 1, shards = 8;
  double bytes_per_second = 0, latency = 0;  // beta and alpha of the network between two processes
  double flops = 0;                          // operations per second that one process reaches in training
  bool shard_optimizer = false;
  int64_t state_values = 2;  // of the optimizer, for every learned number
};

struct ProcessCost {
  double compute = 0;                           // seconds of the process with the most items
  double fixed_tree = 0, ring = 0, tree = 0;    // seconds of communication: as heed does it, by a ring all-reduce, by binomial trees
  double bytes_sent = 0, messages = 0;          // by each process
  double step = 0, serial = 0;                  // seconds; serial: without overlap of communication and backward
  double efficiency = 0;                        // speedup over one process, divided by `processes`
  int64_t gradient_bytes = 0, state_bytes = 0;  // of each process: gradients with the sums of shards, and the optimizer's state
};

ProcessCost cost_in_processes(const ModelCost& cost, const ProcessOptions& options);

}  // namespace heed
