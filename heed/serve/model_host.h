// The thread that owns a model. It loads the model when the first request comes, and computes what waits in as few calls as possible:
// texts being generated take their steps together and new ones join at any step; sentences that wait are embedded or classified together.
// What a request gets does not depend on the others: their tokens share the products of linear layers, whose rows have the same bits
// whatever the other rows are, and attention is computed for every sequence on its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "heed/serve/generation.h"
#include "heed/serve/loaded_model.h"
#include "heed/serve/metrics.h"

namespace heed::serve {

using Failed = std::function<void(std::exception_ptr error)>;

// Sentences to embed, or to classify as a whole.
struct SentenceJob {
  bool embed = true;
  std::vector<Encoding> sentences = {};
  // A vector or the logits of every sentence. In the model's thread
  std::function<void(const LoadedModel& model, std::vector<std::vector<float>> rows)> done = {};
  Failed failed = {};
};

// Anything else that needs the model.
struct ModelJob {
  std::function<void(LoadedModel& model)> run = {};
  Failed failed = {};
};

struct HostOptions {
  Weights weights = Weights::packed;
  int64_t most_running = 32;    // texts generated at the same time
  int64_t most_waiting = 256;   // requests
  int64_t batch_tokens = 4096;  // of sentences in one call
};

class ModelHost {
 public:
  // make_room: called before a model of so many bytes is loaded
  ModelHost(ModelInfo info, const HostOptions& options, Metrics& metrics, std::function<void(int64_t bytes)> make_room);
  ~ModelHost();
  ModelHost(const ModelHost&) = delete;
  ModelHost& operator=(const ModelHost&) = delete;

  const ModelInfo& info() const { return info_; }
  Tokenizer tokenizer();  // without loading the model
  Tokenizer target_tokenizer();

  // A 429 if too many wait.
  void submit(std::shared_ptr<GenerationRequest> request);
  void submit(SentenceJob job);
  void submit(ModelJob job);

  bool loaded() const { return bytes_ > 0; }
  int64_t bytes() const { return bytes_; }
  int64_t last_used() const { return last_used_; }  // counts uses of all models
  bool unload_if_idle();

 private:
  struct Texts;  // being generated

  void admit();  // throws if too many wait
  void work();
  void serve_round(std::unique_lock<std::mutex>& lock);
  void run_sentences(std::vector<SentenceJob> jobs);
  void step_texts();
  void start_waiting_texts();
  void fail_all(std::exception_ptr error);

  const ModelInfo info_;
  const HostOptions options_;
  Metrics& metrics_;
  const std::function<void(int64_t bytes)> make_room_;

  std::mutex mutex_;  // of what waits
  std::condition_variable wake_;
  std::deque<std::shared_ptr<GenerationRequest>> waiting_texts_;
  std::deque<SentenceJob> waiting_sentences_;
  std::deque<ModelJob> waiting_jobs_;
  bool stopping_ = false;

  std::mutex model_mutex_;  // held while the model is in use
  std::unique_ptr<LoadedModel> model_;
  std::list<std::unique_ptr<RunningText>> running_;
  std::map<const GenerationRequest*, int64_t> unfinished_;  // choices
  std::atomic<int64_t> bytes_{0}, last_used_{0};

  std::mutex tokenizer_mutex_;
  std::optional<Tokenizer> tokenizer_, target_;
  std::thread thread_;
};

}  // namespace heed::serve
