// Peak memory as reported by the kernel, in a separate process so that nothing else is counted.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "bench/bench.h"
#include "heed/core/check.h"
#include "heed/core/parallel.h"

namespace heed::bench {
namespace {

double status(const std::string& field) {
  std::string line;
  for (std::ifstream lines("/proc/self/status"); std::getline(lines, line);)
    if (line.rfind(field, 0) == 0) return std::stod(line.substr(field.size() + 1)) * 1024;
  fail("bench: /proc/self/status has no ", field);
}

}  // namespace

double memory_of_call(const Benchmark& benchmark) {
  thread_count();  // starts the threads
  const double before = status("VmRSS");
  const Call call = benchmark.make();
  for (int i = 0; i < 2; ++i) call();
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the peak
  for (int i = 0; i < 3; ++i) call();
  return status("VmHWM") - before;
}

double memory_of_own_process(const std::string& name) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string command;
  command.append("'").append(program).append("' --memory '").append(name).append("'");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 64> line{};
  check(pipe && std::fgets(line.data(), line.size(), pipe.get()), "bench: '", command, "' printed nothing");
  return std::stod(line.data());
}

}  // namespace heed::bench
