// The cost of a model or a preset: parameters, arithmetic, memory and bytes moved, predicted and optionally measured.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "heed/models/cost_run.h"
#include "heed/train/presets.h"

namespace heed {

// The machine's peak rates, and the measured cost of calls.
struct MeasuredRun {
  double peak_flops = 0, bytes_per_second = 0;
  MeasuredCost inference = {};
  std::optional<MeasuredCost> training = {};
};

struct CostReport {
  std::string name = {}, architecture = {};
  int64_t vocabulary = 0;  // of vocab_size in the config; 0: none
  ModelCost cost = {};
  MemoryCost inference = {};
  std::optional<MemoryCost> training = {};  // of models with a loss
  std::string optimizer = "adamw";
  std::optional<MeasuredRun> measured = {};
};

// The total cost of a call.
struct CallCost {
  int64_t multiply_adds = 0, moved_bytes = 0, state_bytes = 0;
  MemoryCost memory = {};
  const MeasuredCost* measured = nullptr;

  int64_t memory_bytes() const { return memory.weights + memory.activations + state_bytes; }
  double operations() const { return 2 * static_cast<double>(multiply_adds); }
  // The minimum time by the machine's peak arithmetic and memory bandwidth.
  double roofline(const MeasuredRun& run) const {
    return std::max(operations() / run.peak_flops, static_cast<double>(moved_bytes) / run.bytes_per_second);
  }
};

CallCost inference_call(const CostReport& report);
CallCost training_call(const CostReport& report);

// The settings of a report.
struct CostSettings {
  InputSize size = {};
  int64_t image = 0, rounds = 5;
  bool measure = false;
  std::string optimizer = "adamw";
  ModelChoice choice = {};  // for a preset
  Json model = {};          // keys of config.json, otherwise
};

void declare(Settings& settings, CostSettings& of, bool preset);

int64_t optimizer_state_values(const std::string& optimizer);  // for every learned number

// A model with shapes but no data. With the folder's weights their stored dtypes and layouts are known; without, only `config`.
Model shapes_only_model(const std::string& name, const Json& config, bool with_weights = true);

// name: the folder of the model, or a name to display. config: its config.json before the settings are applied
CostReport cost_report(const std::string& name, Json config, const CostSettings& of);
Json cost_json(const CostReport& report);

}  // namespace heed
