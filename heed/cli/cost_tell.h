// What a model costs, put together and told: for people as a table of modules and one of totals, for machines as JSON.
#pragma once

#include <optional>
#include <ostream>

#include "heed/io/json.h"
#include "heed/models/cost_run.h"

namespace heed::cli {

// What the machine can do at most, and what calls took of it.
struct MeasuredRun {
  double peak_flops = 0, bytes_per_second = 0;
  MeasuredCost inference = {};
  std::optional<MeasuredCost> training = {};
};

struct CostReport {
  std::string name = {}, architecture = {};
  ModelCost cost = {};
  MemoryCost inference = {};
  std::optional<MemoryCost> training = {};  // of models that have a loss
  std::string optimizer = "adamw";
  int64_t step_multiply_adds = 0;  // of the last token of a text, behind the kept keys and values of the others; 0: writes no text
  std::optional<MeasuredRun> measured = {};
};

// Numbers that an optimizer keeps for every one that is learned.
int64_t optimizer_numbers(const std::string& optimizer);
double read_speed();  // of memory, in bytes per second, measured

void print_cost(std::ostream& out, const CostReport& report, bool all);
Json cost_json(const CostReport& report);

}  // namespace heed::cli
