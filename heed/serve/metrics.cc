#include "heed/serve/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

namespace heed::serve {
namespace {

void describe(std::ostream& out, const char* name, const char* type, const char* help) {
  out << "# HELP heed_" << name << ' ' << help << "\n# TYPE heed_" << name << ' ' << type << '\n';
}

void add_value(std::ostream& out, const char* name, const char* type, const char* help, int64_t value) {
  describe(out, name, type, help);
  out << "heed_" << name << ' ' << value << '\n';
}

}  // namespace

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void Metrics::request(const std::string& route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, status}];
  Times& times = times_[route];
  ++times.counts[static_cast<size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin())];
  times.sum += seconds;
}

void Metrics::batch(int64_t sequences, int64_t tokens) {
  const std::lock_guard lock(mutex_);
  ++batches_;
  batched_sequences_ += sequences;
  batched_tokens_ += tokens;
}

std::string Metrics::text(int64_t connections) const {
  const std::lock_guard lock(mutex_);
  std::ostringstream out;
  out.precision(12);
  describe(out, "requests_total", "counter", "Answered requests");
  for (const auto& [key, count] : requests_)
    out << "heed_requests_total{route=\"" << key.first << "\",status=\"" << key.second << "\"} " << count << '\n';
  describe(out, "request_seconds", "histogram", "From the first byte of a request to the last of its answer");
  for (const auto& [route, times] : times_) {
    const std::string label = "{route=\"" + route + "\"";
    int64_t below = 0;
    for (size_t i = 0; i < kBounds.size(); ++i)
      out << "heed_request_seconds_bucket" << label << ",le=\"" << kBounds[i] << "\"} " << (below += times.counts[i]) << '\n';
    out << "heed_request_seconds_bucket" << label << ",le=\"+Inf\"} " << (below += times.counts.back()) << '\n';
    out << "heed_request_seconds_sum" << label << "} " << times.sum << "\nheed_request_seconds_count" << label << "} " << below << '\n';
  }
  add_value(out, "connections", "gauge", "Open connections", connections);
  add_value(out, "queued_requests", "gauge", "Requests that wait for a model", queued);
  add_value(out, "running_sequences", "gauge", "Texts being generated", running);
  add_value(out, "cache_blocks", "gauge", "Blocks of key-value memory of loaded models", cache_blocks);
  add_value(out, "cache_blocks_used", "gauge", "Blocks that running texts have taken", cache_blocks_used);
  add_value(out, "pauses_total", "counter", "Texts that gave their blocks to older ones and started again", pauses);
  add_value(out, "rejected_total", "counter", "Requests answered with 429", rejected);
  add_value(out, "prompt_tokens_total", "counter", "Tokens of prompts and inputs", prompt_tokens);
  add_value(out, "generated_tokens_total", "counter", "Generated tokens", generated_tokens);
  add_value(out, "batches_total", "counter", "Calls of models", batches_);
  add_value(out, "batched_sequences_total", "counter", "Sequences in these calls", batched_sequences_);
  add_value(out, "batched_tokens_total", "counter", "Tokens in these calls", batched_tokens_);
  add_value(out, "model_loads_total", "counter", "Models loaded", loads);
  add_value(out, "model_drops_total", "counter", "Models dropped to free memory", drops);
  add_value(out, "resident_bytes", "gauge", "Memory of the process", resident_bytes());
  return out.str();
}

}  // namespace heed::serve
