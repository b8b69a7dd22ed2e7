// Counters of the server in Prometheus' text format.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace heed::serve {

class Metrics {
 public:
  void request(const std::string& route, int status, double seconds);  // route: "/v1/models/{model}"
  void batch(int64_t sequences, int64_t tokens);                       // one call of a model

  std::atomic<int64_t> prompt_tokens{0}, generated_tokens{0}, rejected{0}, queued{0}, running{0}, loads{0}, drops{0};
  std::atomic<int64_t> cache_blocks{0}, cache_blocks_used{0}, pauses{0};

  std::string text(int64_t connections) const;

 private:
  static constexpr std::array<double, 12> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30};
  struct Times {
    std::array<int64_t, kBounds.size() + 1> counts = {};
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;
  std::map<std::string, Times> times_;
  int64_t batches_ = 0, batched_sequences_ = 0, batched_tokens_ = 0;
};

int64_t resident_bytes();  // memory of this process

}  // namespace heed::serve
