// Results as table, Markdown and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/peak.h"

namespace heed::bench {

struct Result {
  Benchmark benchmark;
  double seconds = 0;                                                          // median over the rounds
  std::optional<double> baseline_seconds = {}, baseline = {};                  // heed's rate relative to the baseline: median over rounds
  std::optional<double> peer_seconds = {}, peer = {};                          // the peer's time / heed's: median over rounds
  std::optional<double> of_peak = {};                                          // the rate relative to the machine's peak
  std::optional<double> memory = {}, peer_memory = {}, peer_over_memory = {};  // peak bytes; the peer's / heed's
  std::optional<double> rate() const;                                          // in units per second
  std::optional<double> share(const Peak& peak) const;
};

struct Report {
  std::string machine;  // CPU, cores, instruction set, threads
  std::string peer;     // empty: no peer
  int rounds = 0;
  Peak peak;
  std::vector<Result> results;
  bool quiet = true;  // whether the machine was idle otherwise
};

// A performance target and the measured value.
struct Verdict {
  std::string what, found, below;  // below: the benchmarks that miss it, with their values
  bool reached = false;
};
std::vector<Verdict> evaluate_criteria(const Report& report);  // criteria.cc; only targets that were measured

std::string machine_text();
std::string peak_text(const Peak& peak);
std::string percent(double share);
std::string decimal(double value, int digits);

std::string header_line(const Report& report);
std::string result_line(const Report& report, const Result& result);
std::string verdict_line(const Verdict& verdict);

void write_json(const Report& report, const std::string& path);
// Writes the tables between the two markers of the file; creates the file if it does not exist.
void write_markdown(const Report& report, const std::string& path);

}  // namespace heed::bench
