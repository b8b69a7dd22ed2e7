#include "heed/cli/print_cost.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "heed/cli/module_tree.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

constexpr int64_t kFloat = 4;

std::string rounded(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f%s" : value >= 10 ? "%.1f%s" : "%.2f%s", value, unit);
  return text;
}

std::string readable_seconds(double seconds) {
  return seconds >= 1 ? rounded(seconds, " s") : seconds >= 1e-3 ? rounded(1e3 * seconds, " ms") : rounded(1e6 * seconds, " us");
}

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

CallCost inference_call(const CostReport& report) {
  return {.multiply_adds = report.cost.total.multiply_adds,
          .moved_bytes = report.cost.total.moved_bytes,
          .memory = report.inference,
          .measured = report.measured ? &report.measured->inference : nullptr};
}

// A training step. The optimizer reads weights, gradients and its state, and writes weights and state.
CallCost training_call(const CostReport& report) {
  const int64_t state = optimizer_state_values(report.optimizer), learned = report.cost.learned;
  const bool measured = report.measured && report.measured->training;
  return {.multiply_adds = report.cost.total.training_multiply_adds,
          .moved_bytes = report.cost.total.training_moved_bytes + (report.optimizer == "none" ? 0 : kFloat * learned * (3 + 2 * state)),
          .state_bytes = kFloat * learned * state,
          .memory = report.training.value_or(MemoryCost()),
          .measured = measured ? &*report.measured->training : nullptr};
}

using Rows = std::vector<std::vector<std::string>>;

void print_totals(std::ostream& out, const CostReport& report) {
  std::vector<CallCost> calls{inference_call(report)};
  Rows rows{{"", "inference"}};
  if (report.training) {
    calls.push_back(training_call(report));
    rows[0].emplace_back("training step");
  }
  const auto row = [&](const std::string& name, const auto& cell) {
    rows.push_back({name});
    for (const CallCost& call : calls) rows.back().push_back(cell(call));
  };
  row("multiply-adds", [](const CallCost& call) { return readable_count(call.multiply_adds); });
  row("bytes moved", [](const CallCost& call) { return readable_bytes(call.moved_bytes); });
  row("operations per byte", [](const CallCost& call) { return rounded(call.operations() / static_cast<double>(call.moved_bytes), ""); });
  row("memory", [](const CallCost& call) { return readable_bytes(call.memory_bytes()); });
  row("  weights", [](const CallCost& call) { return readable_bytes(call.memory.weights); });
  row(report.training ? "  activations, gradients" : "  activations",
      [](const CallCost& call) { return readable_bytes(call.memory.activations); });
  if (report.training)
    row("  optimizer, " + report.optimizer, [](const CallCost& call) { return call.state_bytes ? readable_bytes(call.state_bytes) : "-"; });
  if (report.measured) {
    const MeasuredRun& run = *report.measured;
    rows.push_back({"measured"});
    row("  multiply-adds", [](const CallCost& call) { return readable_count(call.measured->multiply_adds); });
    row("  weights", [](const CallCost& call) { return readable_bytes(call.measured->memory.weights); });
    row("  activations, gradients", [](const CallCost& call) { return readable_bytes(call.measured->memory.activations); });
    row("  time", [](const CallCost& call) { return readable_seconds(call.measured->seconds); });
    row("  operations per second", [](const CallCost& call) { return rounded(call.operations() / call.measured->seconds / 1e9, " G"); });
    row("  share of peak arithmetic",
        [&](const CallCost& call) { return rounded(100 * call.operations() / call.measured->seconds / run.peak_flops, "%"); });
    row("  share of the roofline", [&](const CallCost& call) { return rounded(100 * call.roofline(run) / call.measured->seconds, "%"); });
  }
  print_rows(out, rows, calls.size() == 2 ? std::vector<bool>{true, false, false} : std::vector<bool>{true, false});
  if (report.measured)
    out << "\nThis machine: " << rounded(report.measured->peak_flops / 1e9, " G") << " operations per second peak, "
        << rounded(report.measured->bytes_per_second / 1e9, " GB") << " per second from memory.\n";
}

Json call_json(const CallCost& call, const std::optional<MeasuredRun>& run) {
  const auto memory = [](const MemoryCost& of) {
    return Json{{"weights", of.weights}, {"activations", of.activations}, {"gradients", of.gradients}};
  };
  Json out{{"multiply_adds", call.multiply_adds},
           {"moved_bytes", call.moved_bytes},
           {"memory_bytes", call.memory_bytes()},
           {"memory", memory(call.memory)}};
  out["memory"]["optimizer"] = call.state_bytes;
  if (call.measured)
    out["measured"] = {{"multiply_adds", call.measured->multiply_adds},
                       {"memory", memory(call.measured->memory)},
                       {"seconds", call.measured->seconds},
                       {"operations_per_second", call.operations() / call.measured->seconds},
                       {"share_of_peak", call.operations() / call.measured->seconds / run->peak_flops},
                       {"share_of_roofline", call.roofline(*run) / call.measured->seconds}};
  return out;
}

}  // namespace

int64_t optimizer_state_values(const std::string& optimizer) { return optimizer == "none" ? 0 : optimizer == "sgd" ? 1 : 2; }

double read_bandwidth() {
  const Tensor large = Tensor::ones({int64_t{32} << 20}, kCpu);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    sum(large);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(kFloat * large.count()) / seconds);
  }
  return best;
}

void print_cost(std::ostream& out, const CostReport& report, bool all) {
  const InputSize& size = report.cost.size;
  out << report.name << ", " << report.architecture << ": " << report.cost.total.count << " parameters\nA batch of " << size.batch;
  if (size.tokens) out << " with " << size.tokens << " tokens";
  if (size.target) out << " and " << size.target << " in the target";
  out << "\n\n";
  using Part = ModelPart;
  const auto number = [](int64_t Part::*field) {
    return [field](const Part*, const Part& sum) { return sum.*field ? readable_count(sum.*field) : std::string(); };
  };
  const auto bytes = [](int64_t Part::*field) {
    return [field](const Part*, const Part& sum) { return sum.*field ? readable_bytes(sum.*field) : std::string(); };
  };
  std::vector<TreeColumn> columns{{"parameters", [](const Part*, const Part& sum) { return sum.count ? std::to_string(sum.count) : ""; }},
                                  {"multiply-adds", number(&Part::multiply_adds)},
                                  {"moved", bytes(&Part::moved_bytes)},
                                  {"activations", bytes(&Part::activation_bytes)}};
  if (report.training) {
    columns.push_back({"training: multiply-adds", number(&Part::training_multiply_adds)});
    columns.push_back({"moved", bytes(&Part::training_moved_bytes)});
  }
  print_modules(out, report.cost, columns, all);
  out << '\n';
  print_totals(out, report);
  const ModelCost& cost = report.cost;
  if (cost.cache_bytes) {
    const int64_t whole = size.batch * (cost.cache_bytes * (size.target ? size.target : size.tokens) + cost.memory_bytes * size.tokens);
    out << "\nKey/value cache: " << readable_bytes(cost.cache_bytes) << " per token of a text";
    if (cost.memory_bytes) out << ", " << readable_bytes(cost.memory_bytes) << " per token of its source";
    out << ", " << readable_bytes(whole) << " in all\nDecoding the last token with the cache: " << readable_count(cost.step_multiply_adds)
        << " multiply-adds\n";
  }
}

Json cost_json(const CostReport& report) {
  const ModelCost& cost = report.cost;
  Json modules = Json::array();
  for (const ModelPart& part : cost.parts)
    modules.push_back({{"name", part.name},
                       {"parameters", part.count},
                       {"bytes", part.bytes},
                       {"multiply_adds", part.multiply_adds},
                       {"moved_bytes", part.moved_bytes},
                       {"activation_bytes", part.activation_bytes},
                       {"training_multiply_adds", part.training_multiply_adds},
                       {"training_moved_bytes", part.training_moved_bytes}});
  Json out{{"model", report.name},
           {"architecture", report.architecture},
           {"parameters", cost.total.count},
           {"learned", cost.learned},
           {"size", {{"batch", cost.size.batch}, {"tokens", cost.size.tokens}, {"target", cost.size.target}, {"labels", cost.size.labels}}},
           {"inference", call_json(inference_call(report), report.measured)},
           {"cache_bytes_per_token", cost.cache_bytes},
           {"step_multiply_adds", cost.step_multiply_adds},
           {"memory_bytes_per_source_token", cost.memory_bytes},
           {"modules", std::move(modules)}};
  if (report.training) {
    out["training"] = call_json(training_call(report), report.measured);
    out["training"]["optimizer"] = report.optimizer;
  }
  if (report.measured)
    out["machine"] = {{"peak_operations_per_second", report.measured->peak_flops},
                      {"read_bytes_per_second", report.measured->bytes_per_second}};
  return out;
}

}  // namespace heed::cli
