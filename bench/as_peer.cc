// heed_bench as the peer of another heed_bench: compares two builds of heed in one run.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "bench/peer.h"
#include "bench/timing.h"
#include "heed/core/check.h"
#include "heed/core/memory.h"
#include "heed/core/parallel.h"

namespace heed::bench {
namespace {

class PeerServer {
 public:
  explicit PeerServer(std::vector<Benchmark> benchmarks) : benchmarks_(std::move(benchmarks)) {}

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command, argument;
    words >> command >> argument;
    if (command == "threads") {
      set_thread_count(std::stoi(argument));
      return "Other build of heed";
    }
    if (command == "open") {
      timed_ = std::make_unique<Timed>(find(argument).make());
    } else if (command == "round") {
      std::ostringstream seconds;
      seconds << std::setprecision(17) << timed_->round(std::stod(argument));
      return seconds.str();
    } else if (command == "memory") {
      return std::to_string(memory_of_own_process(find(argument).name));
    } else {
      timed_.reset();
      release_cached_memory(kCpu);
    }
    return "ok";
  }

 private:
  const Benchmark& find(const std::string& name) const {
    const auto found = std::find_if(benchmarks_.begin(), benchmarks_.end(), [&](const Benchmark& b) { return b.name == name; });
    check<UsageError>(found != benchmarks_.end(), "the other build has no benchmark ", name);
    return *found;
  }

  std::vector<Benchmark> benchmarks_;
  std::unique_ptr<Timed> timed_;
};

}  // namespace

void serve_as_peer(std::vector<Benchmark> benchmarks) {
  PeerServer server(std::move(benchmarks));
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      answer = server.answer(line);
    } catch (const std::exception& error) {
      answer = error.what();
      std::replace(answer.begin(), answer.end(), '\n', ' ');
    }
    std::cout << answer << std::endl;
  }
}

}  // namespace heed::bench
