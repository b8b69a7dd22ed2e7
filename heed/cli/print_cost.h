// The report of heed cost: a table of modules and a table of totals, or JSON.
#pragma once

#include <optional>
#include <ostream>

#include "heed/io/json.h"
#include "heed/models/cost_run.h"

namespace heed::cli {

// The machine's peak rates, and the measured cost of calls.
struct MeasuredRun {
  double peak_flops = 0, bytes_per_second = 0;
  MeasuredCost inference = {};
  std::optional<MeasuredCost> training = {};
};

struct CostReport {
  std::string name = {}, architecture = {};
  ModelCost cost = {};
  MemoryCost inference = {};
  std::optional<MemoryCost> training = {};  // of models with a loss
  std::string optimizer = "adamw";
  std::optional<MeasuredRun> measured = {};
};

// State values an optimizer keeps per trained parameter.
int64_t optimizer_state_values(const std::string& optimizer);
double read_bandwidth();  // measured memory read bandwidth, bytes per second

void print_cost(std::ostream& out, const CostReport& report, bool all);
Json cost_json(const CostReport& report);

}  // namespace heed::cli
