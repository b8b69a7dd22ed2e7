#include "heed/cli/print_cost.h"

#include <algorithm>
#include <cstdio>

#include "heed/cli/module_tree.h"

namespace heed::cli {
namespace {

std::string rounded(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f%s" : value >= 10 ? "%.1f%s" : "%.2f%s", value, unit);
  return text;
}

std::string readable_seconds(double seconds) {
  return seconds >= 1 ? rounded(seconds, " s") : seconds >= 1e-3 ? rounded(1e3 * seconds, " ms") : rounded(1e6 * seconds, " us");
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

}  // namespace

void print_cost(std::ostream& out, const CostReport& report, bool all) {
  const InputSize& size = report.cost.size;
  out << report.name << ", " << report.architecture << ": " << report.cost.total.count << " parameters\nA batch of " << size.batch;
  if (size.tokens) out << " with " << size.tokens << " tokens";
  if (size.target) out << " and " << size.target << " in the target";
  if (report.vocabulary) out << ", of a vocabulary of " << report.vocabulary;
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

}  // namespace heed::cli
