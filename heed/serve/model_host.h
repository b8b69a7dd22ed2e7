// The thread that owns a model. It starts with the first request, loads the model, and computes waiting requests in as few calls as
// possible: texts being generated advance together, and new ones join at any step; waiting sentences and images share calls. The answer to
// a request does not depend on the others: their tokens share the products of linear layers, where the bits of a row do not depend on the
// other rows, and attention is computed for every sequence separately.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "heed/serve/batch_jobs.h"
#include "heed/serve/metrics.h"
#include "heed/serve/running_texts.h"

namespace heed::serve {

// Other work with the model, for one request.
struct ModelJob {
  std::function<void(LoadedModel& model)> run = {};
  Failed failed = {};
  Cancelled cancelled = {};
};

struct HostOptions {
  Weights weights = Weights::packed;
  TextsOptions texts = {};
  int64_t most_waiting = 256;                     // requests
  int64_t most_image_bytes = int64_t{512} << 20;  // of images that wait
  int64_t batch_tokens = 4096;                    // of sentences and images in one round
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
  void submit(BatchJob job);
  void submit(ModelJob job);

  bool loaded() const { return bytes_ > 0; }
  int64_t bytes() const { return bytes_; }
  int64_t last_used() const { return last_used_; }  // counts uses of all models
  bool idle();                                      // has no requests
  bool unload_if_idle();

 private:
  template <class Item>
  void enqueue(std::deque<Item>& queue, Item item, int64_t image_bytes = 0);
  bool waits() const { return !waiting_texts_.empty() || !waiting_batch_.empty() || !waiting_jobs_.empty(); }
  void drop_cancelled();  // called with the lock of what waits
  void work();
  void load_model();
  void serve_round(std::unique_lock<std::mutex>& lock);
  void start_waiting_texts();  // called with the lock of what waits
  bool works_on_texts() const { return texts_ && !texts_->empty(); }
  void fail_all(std::exception_ptr error);

  const ModelInfo info_;
  const HostOptions options_;
  Metrics& metrics_;
  const std::function<void(int64_t bytes)> make_room_;

  std::mutex mutex_;  // of what waits
  std::condition_variable wake_;
  std::deque<std::shared_ptr<GenerationRequest>> waiting_texts_;
  std::deque<BatchJob> waiting_batch_;
  std::deque<ModelJob> waiting_jobs_;
  int64_t waiting_image_bytes_ = 0;
  std::atomic<bool> stopping_{false};
  bool working_ = false;

  std::mutex model_mutex_;  // held while the model is in use
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<RunningTexts> texts_;  // of language models
  std::vector<Cancelled> clients_;       // of the call that runs
  std::atomic<int64_t> bytes_{0}, last_used_{0};

  std::mutex tokenizer_mutex_;
  std::optional<Tokenizer> tokenizer_, target_;
  std::thread thread_;
};

}  // namespace heed::serve
