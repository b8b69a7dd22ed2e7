// heed cost with processes=: a training step in several processes.
#pragma once

#include <ostream>

#include "heed/io/json.h"
#include "heed/models/cost_processes.h"
#include "heed/train/settings.h"

namespace heed::cli {

struct ProcessSettings {
  int64_t processes = 1, shards = 0;
  std::string bandwidth = "10GB/s", latency = "10us", speed = "auto";
  bool shard_optimizer = false;
};
void declare(Settings& settings, ProcessSettings& of);

struct ProcessReport {
  ProcessOptions options = {};
  ProcessCost cost = {};
  bool assumed_speed = false;  // half of this machine's peak
};
ProcessReport process_report(const ProcessSettings& of, const ModelCost& cost, int64_t state_values);

void print_processes(std::ostream& out, const ProcessReport& report);
Json processes_json(const ProcessReport& report);

}  // namespace heed::cli
