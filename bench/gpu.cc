// heed_gpu_bench: times ops, attention, training steps and inference on a GPU. gpu_peers.py times the same lines with PyTorch,
// gpu_report.py puts both side by side.
#include "bench/gpu.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <set>

#include "bench/pattern.h"
#include "bench/timing.h"
#include "heed/core/isa.h"
#include "heed/cuda/runtime.h"
#include "heed/io/json.h"

namespace heed::bench {
namespace {

struct GpuOptions {
  std::string filter, json, device = "auto";
  bool tiny = false, list = false, profile = false;
};

struct Ceilings {
  double flops = 0, bytes = 0;  // per second; 0: not measured

  // How near a call is to the time that the ceilings allow.
  std::optional<double> share(const GpuLine& line, double seconds) const {
    const double arithmetic = flops > 0 ? line.flops / flops : 0, memory = bytes > 0 ? line.bytes / bytes : 0;
    if (arithmetic == 0 && memory == 0) return {};
    return std::max(arithmetic, memory) / seconds;
  }
};

struct Reading {
  std::vector<double> seconds;  // of one call, every round's
  int64_t calls = 1;            // of a round
  int64_t memory = 0;           // the most that the calls held, inputs and parameters included
};

void wait_for(Device device) {
  if (device.kind == Device::Kind::cuda) cuda::synchronize(device.index);
}

double seconds_of_calls(const Call& call, int64_t calls, Device device) {
  wait_for(device);
  return seconds_of([&] {
    for (int64_t i = 0; i < calls; ++i) call();
    wait_for(device);
  });
}

Reading read_line(const GpuLine& line, const GpuSetup& setup) {
  constexpr double kRound = 20e-3;
  const int warm_ups = setup.tiny ? 0 : 3, rounds = setup.tiny ? 2 : 7;
  release_cached_memory(setup.device);
  const int64_t before = memory_use(setup.device).in_use;
  reset_peak_memory(setup.device);  // the warm-up counts: once a step is a graph, it allocates nothing
  const Call call = line.make();
  for (int i = 0; i < warm_ups; ++i) seconds_of_calls(call, 1, setup.device);
  Reading reading;
  while (!setup.tiny && seconds_of_calls(call, reading.calls, setup.device) < kRound) reading.calls *= 2;
  for (int round = 0; round < rounds; ++round)
    reading.seconds.push_back(seconds_of_calls(call, reading.calls, setup.device) / static_cast<double>(reading.calls));
  reading.memory = memory_use(setup.device).peak - before;
  return reading;
}

// One call after the warm-up, for a profiler that was started with profiling off.
void profile_line(const GpuLine& line, const GpuSetup& setup) {
  release_cached_memory(setup.device);
  const Call call = line.make();
  seconds_of_calls(call, 3, setup.device);
  cuda::driver::set_profiling(true);
  seconds_of_calls(call, 1, setup.device);
  cuda::driver::set_profiling(false);
}

Json json_of(const GpuLine& line, const Reading& reading, const Ceilings& ceilings) {
  const double seconds = median(reading.seconds);
  Json out{{"name", line.name}, {"us", seconds * 1e6}, {"calls", reading.calls}, {"peak_bytes", reading.memory}};
  for (const double each : reading.seconds) out["rounds_us"].push_back(each * 1e6);
  if (line.flops > 0) out.update({{"flops", line.flops}, {"tflop_s", line.flops / seconds / 1e12}});
  if (line.bytes > 0) out.update({{"bytes", line.bytes}, {"gb_s", line.bytes / seconds / 1e9}});
  if (line.items > 0) out.update({{"items", line.items}, {"item", line.item}, {"items_s", line.items / seconds}});
  if (const auto share = ceilings.share(line, seconds)) out["share"] = *share;
  return out;
}

// Those whose name matches. With --tiny several sizes become the same one: it is measured once.
GpuLines chosen_lines(const GpuLines& all, const std::string& filter) {
  const Pattern pattern(filter);
  std::set<std::string> names;
  GpuLines out;
  for (const GpuLine& line : all)
    if (pattern.found_in(line.name) && names.insert(line.name).second) out.push_back(line);
  return out;
}

std::string number_at(const Json& line, const char* key, double unit, int digits) {
  if (!line.contains(key)) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, line.at(key).get<double>() / unit);
  return text;
}

std::string aligned_line(const std::vector<std::string>& cells) {
  constexpr int kWidths[] = {-44, 12, 9, 9, 22, 8, 10};
  std::string out;
  for (size_t i = 0; i < cells.size(); ++i) {
    char cell[128];
    std::snprintf(cell, sizeof cell, "%*s ", kWidths[i], cells[i].c_str());
    out += cell;
  }
  return out;
}

std::string text_of(const Json& line) {
  const std::string items = number_at(line, "items_s", 1, 0);
  return aligned_line({line.at("name").get<std::string>(), number_at(line, "us", 1, 1), number_at(line, "tflop_s", 1, 1),
                       number_at(line, "gb_s", 1, 0), items.empty() ? "" : items + " " + line.at("item").get<std::string>() + "/s",
                       number_at(line, "share", 0.01, 1), number_at(line, "peak_bytes", 1e6, 0)});
}

std::string machine_name(Device device) { return device.kind == Device::Kind::cuda ? cuda::device_info(device.index).name : "the CPU"; }

// Measures the lines, prints them and writes the file again after each, so that a run which is stopped has left what it has measured. A
// line that fails does not stop the others.
class Run {
 public:
  Run(const GpuOptions& options, const GpuSetup& setup) : options_(options), setup_(setup) {
    report_ = {{"by", "heed"}, {"machine", machine_name(setup.device)}, {"tiny", setup.tiny}, {"lines", Json::array()}};
  }

  void measure(const GpuLine& line, bool is_ceiling) {
    try {
      const Reading reading = read_line(line, setup_);
      if (is_ceiling) {
        const double seconds = median(reading.seconds);
        ceilings_.flops = std::max(ceilings_.flops, line.flops / seconds);
        ceilings_.bytes = std::max(ceilings_.bytes, line.bytes / seconds);
      }
      report_["lines"].push_back(json_of(line, reading, ceilings_));
      std::cout << text_of(report_["lines"].back()) << std::endl;
    } catch (const std::exception& error) {
      ++failed_;
      report_["lines"].push_back({{"name", line.name}, {"error", error.what()}});
      std::cout << line.name << ": failed: " << error.what() << std::endl;
    }
    report_["ceilings"] = {{"flops", ceilings_.flops}, {"bytes", ceilings_.bytes}};
    if (!options_.json.empty()) write_json(options_.json, report_);
  }
  int failed() const { return failed_; }

 private:
  const GpuOptions& options_;
  const GpuSetup& setup_;
  Json report_;
  Ceilings ceilings_;
  int failed_ = 0;
};

int run_gpu(const GpuOptions& options) {
  const GpuSetup setup{.device = device_named(options.device), .tiny = options.tiny};
  check<UsageError>(setup.tiny || options.list || setup.device != kCpu, "gpu_bench: there is no GPU; on the CPU it runs with --tiny only");
  set_default_device(setup.device);
  GpuLines all;
  for (const GpuLines& family : {gpu_model_lines(setup), gpu_decode_lines(setup), gpu_attention_lines(setup), gpu_op_lines(setup)})
    all.insert(all.end(), family.begin(), family.end());
  const GpuLines ceilings = gpu_ceilings(setup), lines = chosen_lines(all, options.filter);
  if (options.list) {
    for (const GpuLines& part : {ceilings, lines})
      for (const GpuLine& line : part) std::cout << line.name << '\n';
    return 0;
  }
  if (options.profile) {
    check<UsageError>(setup.device != kCpu, "gpu_bench: --profile needs a GPU");
    for (const GpuLine& line : lines) profile_line(line, setup);
    return 0;
  }
  std::cout << aligned_line({machine_name(setup.device), "us", "TFLOP/s", "GB/s", "items/s", "share %", "peak MB"}) << std::endl;
  Run measured(options, setup);
  for (const GpuLine& line : ceilings) measured.measure(line, true);  // always: shares need them
  for (const GpuLine& line : lines) measured.measure(line, false);
  return measured.failed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heed::bench

int main(int argc, char** argv) try {
  heed::bench::GpuOptions options;
  CLI::App app("Measures heed on a GPU: ops, attention, training steps, inference.");
  app.add_option("--filter", options.filter, "only lines whose name matches this regular expression; the ceilings are always measured");
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:NUMBER")->capture_default_str();
  app.add_flag("--tiny", options.tiny, "small sizes and two calls, to try the program on any machine");
  app.add_option("--json", options.json, "write all numbers to this file");
  app.add_flag("--profile", options.profile, "one call of each line for a profiler, for example: ncu --profile-from-start off");
  app.add_flag("--list", options.list, "only print the names");
  try {
    app.parse(argc, argv);
    heed::apply_instruction_set();
    return heed::bench::run_gpu(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
} catch (const heed::Error& error) {
  std::fprintf(stderr, "heed_gpu_bench: %s\n", error.what());
  return error.exit_code();
} catch (const std::exception& error) {
  std::fprintf(stderr, "heed_gpu_bench: %s\n", error.what());
  return 1;
}
