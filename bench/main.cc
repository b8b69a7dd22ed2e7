// heed_bench: measures the machine's peak, then every benchmark interleaved with its baseline and peer.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <thread>

#include "bench/pattern.h"
#include "bench/peer.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "heed/core/isa.h"
#include "heed/core/memory.h"
#include "heed/core/parallel.h"

namespace heed::bench {
namespace {

struct Options {
  std::string filter, peer, json, markdown, memory;
  bool quick = false, list = false, as_peer = false;
  int rounds() const { return quick ? 3 : 7; }
  double duration() const { return quick ? 5e-3 : 10e-3; }
};

std::vector<Benchmark> chosen(const std::string& filter) {
  const Pattern pattern(filter);
  std::vector<Benchmark> list;
  for (const auto& family : {linear_benchmarks(), rows_benchmarks(), stream_benchmarks(), optimizer_benchmarks(), graph_benchmarks(),
                             image_benchmarks(), attention_benchmarks(), cheaper_benchmarks(), model_benchmarks(), training_benchmarks()})
    for (const Benchmark& benchmark : family)
      if (pattern.found_in(benchmark.name)) list.push_back(benchmark);
  check<UsageError>(!list.empty(), "bench: no benchmark's name matches '", filter, "'");
  return list;
}

// The sides run interleaved, in a different order each round, so that a slow moment of the machine affects all of them. The pause before
// each run is longer than OpenMP threads spin after their work (9 to 11 ms measured for libgomp with default settings, in PyTorch and in
// oneDNN); the warm-up in each run makes up for the idle time.
Result measure(const Benchmark& benchmark, Peer* peer, const Options& options) {
  constexpr std::chrono::milliseconds kPause{20};
  enum Side : size_t { heed_side, baseline_side, peer_side, side_count };
  std::function<double()> run_side[side_count];
  std::vector<double> times[side_count];
  std::vector<size_t> sides{heed_side};

  Timed heed(benchmark.make());
  run_side[heed_side] = [&] { return heed.round(options.duration()); };
  std::unique_ptr<Timed> baseline;
  if (benchmark.make_baseline) {
    baseline = std::make_unique<Timed>(benchmark.make_baseline());
    run_side[baseline_side] = [&] { return baseline->round(options.duration()); };
    sides.push_back(baseline_side);
  }
  if (peer && peer->open(benchmark.name)) {
    run_side[peer_side] = [&] { return peer->round(options.duration()); };
    sides.push_back(peer_side);
  }

  for (int round = 0; round < options.rounds(); ++round) {
    for (const size_t side : sides) {
      if (sides.size() > 1) std::this_thread::sleep_for(kPause);
      times[side].push_back(run_side[side]());
    }
    std::rotate(sides.begin(), sides.begin() + 1, sides.end());
  }
  if (run_side[peer_side]) peer->close();
  std::optional<double> memory, peer_memory;
  if (benchmark.memory) memory = memory_of_own_process(benchmark.name);
  if (benchmark.memory && run_side[peer_side]) peer_memory = peer->memory(benchmark.name);

  const auto ratio = [&](Side side) {
    std::vector<double> ratios;
    for (size_t i = 0; i < times[side].size(); ++i) ratios.push_back(times[side][i] / times[heed_side][i]);
    return median(std::move(ratios));
  };
  Result result{.benchmark = benchmark, .seconds = median(times[heed_side]), .memory = memory, .peer_memory = peer_memory};
  if (memory && peer_memory) result.peer_over_memory = *peer_memory / *memory;
  if (run_side[baseline_side]) {
    result.baseline_seconds = median(times[baseline_side]);
    result.baseline = ratio(baseline_side) * benchmark.work / benchmark.baseline_work;
  }
  if (run_side[peer_side]) {
    result.peer_seconds = median(times[peer_side]);
    result.peer = ratio(peer_side);
  }
  return result;
}

// Peak arithmetic is constant on an idle machine.
bool was_quiet(const Peak& before, const Peak& after) {
  const double all = thread_count() * before.one_thread;
  return before.flops > 0.8 * all && after.flops > 0.8 * all && after.flops < 1.2 * before.flops;
}

void run(const Options& options) {
  if (!options.memory.empty()) {
    std::cout << std::llround(memory_of_call(chosen("^" + options.memory + "$").front())) << '\n';
    return;
  }
  const std::vector<Benchmark> list = chosen(options.filter);
  if (options.list) {
    for (const Benchmark& benchmark : list) std::cout << benchmark.name << '\n';
    return;
  }
  if (options.as_peer) return serve_as_peer(list);
  std::unique_ptr<Peer> peer;
  const auto start_peer = [&] {
    if (!options.peer.empty()) peer = std::make_unique<Peer>(options.peer, thread_count());
  };
  start_peer();

  Report report{machine_text(), peer ? peer->description() : "", options.rounds(), measure_peak(), {}, true};
  std::cout << "machine: " << report.machine << "\npeak:    " << peak_text(report.peak) << '\n';
  if (peer) std::cout << "peer:    " << report.peer << ", " << thread_count() << " threads\n";
  std::cout << '\n' << header_line(report) << std::endl;
  for (const Benchmark& benchmark : list) {
    if (benchmark.memory) start_peer();  // training steps run in a new process
    report.results.push_back(measure(benchmark, peer.get(), options));
    report.results.back().of_peak = report.results.back().share(report.peak);
    release_cached_memory(kCpu);
    std::cout << result_line(report, report.results.back()) << std::endl;
  }

  report.quiet = was_quiet(report.peak, measure_peak());
  std::cout << '\n';
  if (!report.quiet) std::cout << "The machine was busy with other work: discard these numbers.\n";
  for (const Verdict& verdict : evaluate_criteria(report)) std::cout << verdict_line(verdict) << '\n';
  if (!options.json.empty()) write_json(report, options.json);
  if (!options.markdown.empty()) write_markdown(report, options.markdown);
}

}  // namespace
}  // namespace heed::bench

int main(int argc, char** argv) try {
  heed::bench::Options options;
  CLI::App app("Measures heed against the peak of this machine, bare library calls and, with a peer, another library.");
  app.add_option("--filter", options.filter, "only benchmarks whose name matches this regular expression");
  app.add_flag("--quick", options.quick, "3 short rounds instead of 7");
  app.add_flag("--list", options.list, "only print the names");
  app.add_option("--json", options.json, "write the raw results to this file");
  app.add_option("--markdown", options.markdown, "write the tables between the markers of this file");
  app.add_option("--memory", options.memory, "only print the peak memory of this benchmark in bytes");
  app.add_option("--peer", options.peer, "command of a process that runs the same benchmarks (bench/run --peers and --against give it)");
  app.add_flag("--as-peer", options.as_peer, "answer as the peer of another heed_bench, on standard input and output");
  try {
    app.parse(argc, argv);
    heed::apply_instruction_set();
    heed::bench::run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return 0;
} catch (const heed::Error& error) {
  std::fprintf(stderr, "heed_bench: %s\n", error.what());
  return error.exit_code();
} catch (const std::exception& error) {
  std::fprintf(stderr, "heed_bench: %s\n", error.what());
  return 1;
}
