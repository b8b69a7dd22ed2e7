// Results for people (table, markdown) and for programs (JSON).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/peak.h"

namespace heed::bench {

struct Result {
  Benchmark benchmark;
  double seconds = 0;                                      // median over the rounds
  std::optional<double> beside_seconds = {}, beside = {};  // heed's rate as a share of its neighbour's: median of the rounds' shares
  std::optional<double> peer_seconds = {}, peer = {};      // the peer's time / heed's: median of the rounds' ratios
  std::optional<double> of_peak = {};                      // the rate as a share of the machine's
  std::optional<double> memory = {}, peer_memory = {}, peer_over_memory = {};  // bytes at most; the peer's / heed's
  std::optional<double> rate() const;                                          // in units per second
  std::optional<double> share(const Peak& peak) const;
};

struct Report {
  std::string machine;  // CPU, cores, instruction set, threads
  std::string peer;     // empty: none
  int rounds = 0;
  Peak peak;
  std::vector<Result> results;
  bool quiet = true;  // whether the machine had nothing else to do
};

// What heed wants to reach, and where it stands.
struct Verdict {
  std::string what, found, below;  // below: the benchmarks under the mark, with their numbers
  bool reached = false;
};
std::vector<Verdict> judge(const Report& report);  // criteria.cc; only what was measured

std::string machine_in_words();
std::string peak_in_words(const Peak& peak);
std::string percent(double share);
std::string decimal(double value, int digits);

std::string header_line(const Report& report);
std::string result_line(const Report& report, const Result& result);
std::string verdict_line(const Verdict& verdict);

void write_json(const Report& report, const std::string& path);
// Puts the tables between the two markers of an existing file; a file that is not there is made.
void write_markdown(const Report& report, const std::string& path);

}  // namespace heed::bench
