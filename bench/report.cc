// Tables, JSON and the description of the machine.
#include "bench/report.h"

#include <sched.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heed/core/isa.h"
#include "heed/core/parallel.h"

namespace heed::bench {
namespace {

constexpr const char* kBegin = "<!-- bench: begin -->";
constexpr const char* kEnd = "<!-- bench: end -->";

std::string time_text(double seconds) {
  if (seconds < 1e-3) return decimal(seconds * 1e6, seconds < 1e-4 ? 2 : 1) + " us";
  return decimal(seconds * 1e3, seconds < 1e-1 ? 2 : 1) + " ms";
}

// The cells of a row, in the order of column_names()
std::vector<std::string> cells(const Report& report, const Result& result) {
  const auto rate = result.rate(), share = result.share(report.peak);
  std::vector<std::string> row{result.benchmark.name, time_text(result.seconds)};
  row.push_back(rate ? decimal(*rate / 1e9, 1) + (result.benchmark.unit == Unit::flops ? " GFLOP/s" : " GB/s") : "");
  row.push_back(share ? percent(*share) : "");
  const auto megabytes = [](const std::optional<double>& bytes) { return bytes ? decimal(*bytes / 1e6, 0) : "?"; };
  if (result.memory)
    row.push_back(megabytes(result.memory) + (report.peer.empty() ? "" : " of " + megabytes(result.peer_memory)) + " MB");
  else
    row.push_back(result.baseline ? percent(*result.baseline) + " of " + result.benchmark.baseline : "");
  if (!report.peer.empty()) {
    row.push_back(result.peer_seconds ? time_text(*result.peer_seconds) : "");
    row.push_back(result.peer ? decimal(*result.peer, 2) : "");
  }
  return row;
}

std::vector<std::string> column_names(const Report& report) {
  std::vector<std::string> names{"benchmark", "heed", "rate", "of peak", "baseline"};
  if (report.peer.empty()) return names;
  const std::string peer = report.peer.substr(0, report.peer.find(' '));
  names.insert(names.end(), {peer, peer + " / heed"});
  return names;
}

std::string aligned(const std::vector<std::string>& row) {
  constexpr int kWidths[] = {-46, 10, 14, 8, 14, 10, 15};
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    char cell[128];
    std::snprintf(cell, sizeof cell, "%*s", kWidths[i], row[i].c_str());
    line.append(i ? " " : "").append(cell);
  }
  return line;
}

std::string joined(const std::vector<std::string>& row) {
  std::string line = "|";
  for (const std::string& cell : row) line.append(" ").append(cell).append(" |");
  return line.append("\n");
}

std::string markdown(const Report& report) {
  std::ostringstream out;
  out << "Machine: " << report.machine << ".  \nPeak: " << peak_text(report.peak) << ".  \n";
  if (!report.peer.empty()) out << "Peer: " << report.peer << ", the same number of threads.  \n";
  out << "Medians of " << report.rounds << " rounds" << (report.quiet ? "" : ", while the machine was busy with other work") << ".\n";
  const std::vector<Verdict> verdicts = evaluate_criteria(report);
  if (!verdicts.empty()) {
    out << "\n| target | measured | |\n|---|---|---|\n";
    for (const Verdict& verdict : verdicts) {
      const std::string below = verdict.below.empty() ? "" : "; below: " + verdict.below;
      out << joined({verdict.what, verdict.found, (verdict.reached ? "reached" : "**missed**") + below});
    }
  }
  const std::vector<std::string> names = column_names(report);
  out << "\n" << joined(names) << "|---|";
  for (size_t i = 1; i < names.size(); ++i) out << "---:|";
  out << "\n";
  for (const Result& result : report.results) out << joined(cells(report, result));
  return out.str();
}

}  // namespace

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string percent(double share) { return decimal(share * 100, 0) + "%"; }

std::optional<double> Result::rate() const {
  if (benchmark.unit == Unit::none) return std::nullopt;
  return benchmark.work / seconds;
}

std::optional<double> Result::share(const Peak& peak) const {
  if (benchmark.unit == Unit::none) return std::nullopt;
  return *rate() / (benchmark.unit == Unit::flops ? peak.flops : peak.bytes());
}

std::string machine_text() {
  std::string model = "unknown CPU", line;
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  cpu_set_t cores;
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
  return model + ", " + std::to_string(count) + " cores, " + instruction_set() + ", " + std::to_string(thread_count()) + " threads";
}

std::string peak_text(const Peak& peak) {
  return decimal(peak.flops / 1e9, 0) + " GFLOP/s (one thread " + decimal(peak.one_thread / 1e9, 0) + "); stream copy " +
         decimal(peak.copy / 1e9, 1) + ", scale " + decimal(peak.scale / 1e9, 1) + ", triad " + decimal(peak.triad / 1e9, 1) +
         " GB/s; copy with non-temporal stores " + decimal(peak.non_temporal / 1e9, 1) + " GB/s";
}

std::string header_line(const Report& report) { return aligned(column_names(report)); }
std::string result_line(const Report& report, const Result& result) { return aligned(cells(report, result)); }

std::string verdict_line(const Verdict& verdict) {
  return (verdict.reached ? "reached  " : "missed   ") + verdict.what + ": " + verdict.found +
         (verdict.below.empty() ? "" : "\n           below: " + verdict.below);
}

void write_json(const Report& report, const std::string& path) {
  const auto number = [](const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  nlohmann::ordered_json results = nlohmann::json::array();
  for (const Result& result : report.results) {
    const Benchmark& benchmark = result.benchmark;
    results.push_back({{"name", benchmark.name},
                       {"unit", benchmark.unit == Unit::flops   ? "flops"
                                : benchmark.unit == Unit::bytes ? "bytes"
                                                                : "none"},
                       {"work", benchmark.work},
                       {"seconds", result.seconds},
                       {"share_of_peak", number(result.share(report.peak))},
                       {"beside", benchmark.baseline},
                       {"beside_seconds", number(result.baseline_seconds)},
                       {"share_of_beside", number(result.baseline)},
                       {"peer_seconds", number(result.peer_seconds)},
                       {"peer_over_heed", number(result.peer)},
                       {"memory", number(result.memory)},
                       {"peer_memory", number(result.peer_memory)}});
  }
  const Peak& peak = report.peak;
  const nlohmann::ordered_json peaks{{"flops", peak.flops}, {"flops_one_thread", peak.one_thread},
                                     {"copy", peak.copy},   {"scale", peak.scale},
                                     {"triad", peak.triad}, {"around", peak.non_temporal}};
  const nlohmann::ordered_json whole{{"machine", report.machine}, {"peer", report.peer}, {"rounds", report.rounds},
                                     {"quiet", report.quiet},     {"peak", peaks},       {"results", results}};
  std::ofstream out(path);
  out << whole.dump(1) << '\n';
  check<FileError>(out.good(), "bench: cannot write ", path);
}

void write_markdown(const Report& report, const std::string& path) {
  std::string text = std::string(kBegin) + "\n" + kEnd + "\n";
  if (std::filesystem::exists(path)) {
    std::ifstream in(path);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  check<FileError>(begin != std::string::npos && end != std::string::npos && begin < end, "bench: ", path, " has no lines '", kBegin,
                   "' and '", kEnd, "'");
  const size_t start = begin + std::string(kBegin).size();
  text.replace(start, end - start, "\n" + markdown(report));
  std::ofstream out(path);
  out << text;
  check<FileError>(out.good(), "bench: cannot write ", path);
}

}  // namespace heed::bench
