// The texts that a model generates. All advance by one token a step, together with pieces of prompts that have not been read yet.
#pragma once

#include <list>
#include <map>

#include "heed/serve/generation.h"
#include "heed/serve/loaded_model.h"
#include "heed/serve/metrics.h"

namespace heed::serve {

struct TextsOptions {
  int64_t most_running = 32;               // at the same time
  int64_t cache_bytes = int64_t{2} << 30;  // of keys and values
};

// Belongs to the model's thread.
class RunningTexts {
 public:
  RunningTexts(const LoadedModel& model, const TextsOptions& options, Metrics& metrics);
  ~RunningTexts();
  RunningTexts(const RunningTexts&) = delete;
  RunningTexts& operator=(const RunningTexts&) = delete;

  bool empty() const { return running_.empty() && paused_.empty(); }
  // Whether it may start now: there are places, and blocks for its prompt, and nothing is paused.
  bool has_room(const GenerationRequest& request) const;
  void start(const std::shared_ptr<GenerationRequest>& request);
  void step();
  void fail(const std::exception_ptr& error);  // all

 private:
  using Texts = std::list<std::unique_ptr<RunningText>>;  // the oldest first

  void stop_cancelled();
  void resume_paused();
  bool make_room(Texts::iterator text);
  void advance();
  void forks_of(RunningText& text, std::span<const float> scores, std::vector<std::pair<RunningText*, std::vector<float>>>& forks);
  void remove_done();
  void count();  // metrics are sums over all models

  const LoadedModel& model_;
  const TextsOptions options_;
  Metrics& metrics_;
  CachePool pool_;
  Texts running_, paused_;                                  // paused: without blocks, because older ones needed them
  std::map<const GenerationRequest*, int64_t> unfinished_;  // choices
  int64_t counted_running_ = 0, counted_blocks_ = 0;
};

}  // namespace heed::serve
