#include "heed/cli/cost_processes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "heed/core/parse.h"
#include "heed/core/peak.h"

namespace heed::cli {
namespace {

// "25GB/s" with units {"B/s", 1}: a number, a prefix and a unit.
double quantity(const std::string& key, const std::string& text, const std::map<std::string, double>& units, const char* example) {
  const size_t end = text.find_first_not_of("0123456789.e+-");
  const std::optional<double> number = parse_number<double>(text.substr(0, end));
  std::string unit = end == text.npos ? "" : text.substr(end);
  static const std::map<char, double> prefixes{{'n', 1e-9}, {'u', 1e-6}, {'m', 1e-3}, {'k', 1e3},
                                               {'M', 1e6},  {'G', 1e9},  {'T', 1e12}, {'P', 1e15}};
  double factor = 1;
  if (const auto prefix = unit.empty() ? prefixes.end() : prefixes.find(unit[0]); prefix != prefixes.end() && !units.contains(unit)) {
    factor = prefix->second;
    unit.erase(0, 1);
  }
  const auto found = units.find(unit);
  check<UsageError>(number && *number >= 0 && std::isfinite(*number) && found != units.end(), "cost: ", key, "='", text,
                    "', expected for example ", key, "=", example);
  return *number * factor * found->second;
}

std::string seconds_text(double seconds) {
  std::ostringstream text;
  text.precision(3);
  if (seconds >= 1)
    text << seconds << " s";
  else if (seconds >= 1e-3)
    text << seconds * 1e3 << " ms";
  else
    text << seconds * 1e6 << " us";
  return text.str();
}

std::string scaled_text(double number, const char* unit) {
  const char* const prefixes[]{"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  for (; number >= 1000 && i < 5; ++i) number /= 1000;
  std::ostringstream text;
  text.precision(3);
  text << number << ' ' << prefixes[i] << unit;
  return text.str();
}

}  // namespace

void declare(Settings& settings, ProcessSettings& of) {
  settings.heading("Several processes");
  settings.add("processes", of.processes, "processes that share a training step; batch is that of all of them", {.least = 1, .most = 1e6});
  settings.add("bandwidth", of.bandwidth, "between two processes: 25GB/s, 100Gbit/s");
  settings.add("latency", of.latency, "of a message: 5us");
  settings.add("speed", of.speed, "operations per second that a process reaches: 100GFLOP/s; auto: half of this machine's peak");
  settings.add("shards", of.shards, "as in heed train; 0: 8, or one for each process", {.least = 0, .most = 65536});
  settings.add("shard_optimizer", of.shard_optimizer, "as in heed train");
}

ProcessReport process_report(const ProcessSettings& of, const ModelCost& cost, int64_t state_values) {
  ProcessReport out{.options = {.processes = of.processes,
                                .shards = of.shards > 0 ? of.shards : std::max<int64_t>(of.processes, 8),
                                .bytes_per_second = quantity("bandwidth", of.bandwidth, {{"B/s", 1}, {"bit/s", 0.125}}, "25GB/s"),
                                .latency = quantity("latency", of.latency, {{"s", 1}}, "5us"),
                                .shard_optimizer = of.shard_optimizer,
                                .state_values = state_values},
                    .assumed_speed = of.speed == "auto"};
  out.options.flops = out.assumed_speed ? peak_flops() / 2 : quantity("speed", of.speed, {{"FLOP/s", 1}}, "100GFLOP/s");
  check<UsageError>(out.options.bytes_per_second > 0 && out.options.flops > 0, "cost: bandwidth and speed must be larger than 0");
  out.cost = cost_in_processes(cost, out.options);
  return out;
}

void print_processes(std::ostream& out, const ProcessReport& report) {
  const ProcessOptions& options = report.options;
  const ProcessCost& cost = report.cost;
  std::ostringstream percent;
  percent.precision(3);
  percent << 100 * cost.efficiency << '%';
  out << "\nA training step in " << options.processes << " processes of " << scaled_text(options.flops, "FLOP/s")
      << (report.assumed_speed ? " (half of this machine's peak)" : "") << ", with " << scaled_text(options.bytes_per_second, "B/s")
      << " and " << seconds_text(options.latency) << " between two of them\n"
      << "  compute          " << seconds_text(cost.compute) << '\n'
      << "  communication    " << seconds_text(cost.fixed_tree) << ": each sends " << scaled_text(cost.bytes_sent, "B") << " in "
      << cost.messages << " messages (a ring all-reduce: " << seconds_text(cost.ring) << ", trees: " << seconds_text(cost.tree) << ")\n"
      << "  step             " << seconds_text(cost.step) << " (" << seconds_text(cost.serial) << " if communication followed backward)\n"
      << "  efficiency       " << percent.str() << '\n'
      << "  memory of each   " << scaled_text(static_cast<double>(cost.gradient_bytes), "B") << " gradients and their sums, "
      << scaled_text(static_cast<double>(cost.state_bytes), "B") << " optimizer\n";
}

Json processes_json(const ProcessReport& report) {
  const ProcessCost& cost = report.cost;
  return {{"processes", report.options.processes},
          {"shards", report.options.shards},
          {"bytes_per_second", report.options.bytes_per_second},
          {"latency", report.options.latency},
          {"operations_per_second", report.options.flops},
          {"compute_seconds", cost.compute},
          {"communication_seconds", cost.fixed_tree},
          {"ring_seconds", cost.ring},
          {"tree_seconds", cost.tree},
          {"bytes_sent", cost.bytes_sent},
          {"messages", cost.messages},
          {"step_seconds", cost.step},
          {"serial_step_seconds", cost.serial},
          {"efficiency", cost.efficiency},
          {"gradient_bytes", cost.gradient_bytes},
          {"optimizer_bytes", cost.state_bytes}};
}

}  // namespace heed::cli
