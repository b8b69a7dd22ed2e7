#include "heed/serve/model_host.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/core/interrupt.h"
#include "heed/core/thread.h"
#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

std::atomic<int64_t> uses{0};  // of all models

// Loading fails for reasons that the client cannot change.
std::exception_ptr unavailable(const std::string& id, const std::exception& error) {
  return std::make_exception_ptr(HttpError(503, id + ": cannot be loaded: " + error.what()));
}

// Jobs, and requests for texts.
const Cancelled& cancelled_of(const auto& job) { return job.cancelled; }
const Cancelled& cancelled_of(const std::shared_ptr<GenerationRequest>& request) { return request->cancelled; }
void end_with(const auto& job, const std::exception_ptr& error) { job.failed(error); }
void end_with(const std::shared_ptr<GenerationRequest>& request, const std::exception_ptr& error) { request->on_end(error); }

}  // namespace

ModelHost::ModelHost(ModelInfo info, const HostOptions& options, Metrics& metrics, std::function<void(int64_t bytes)> make_room)
    : info_(std::move(info)), options_(options), metrics_(metrics), make_room_(std::move(make_room)) {}

ModelHost::~ModelHost() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Tokenizer ModelHost::tokenizer() {
  const std::lock_guard lock(tokenizer_mutex_);
  if (!tokenizer_) tokenizer_.emplace(Tokenizer::open(info_.folder));
  return *tokenizer_;
}

Tokenizer ModelHost::target_tokenizer() {
  const std::lock_guard lock(tokenizer_mutex_);
  if (!target_) target_.emplace(Tokenizer::open_target(info_.folder));
  return *target_;
}

template <class Item>
void ModelHost::enqueue(std::deque<Item>& queue, Item item, int64_t image_bytes) {
  {
    const std::lock_guard lock(mutex_);
    require(!stopping_, 503, "the server is stopping");
    const auto waiting = static_cast<int64_t>(waiting_texts_.size() + waiting_batch_.size() + waiting_jobs_.size());
    require(waiting < options_.most_waiting, 429, info_.id, ": ", waiting, " requests are already waiting; try again later");
    const int64_t bytes = waiting_image_bytes_ + image_bytes;
    require(image_bytes == bytes || bytes <= options_.most_image_bytes, 429, info_.id, ": images of ", waiting_image_bytes_,
            " bytes are already waiting; try again later");
    if (!thread_.joinable()) thread_ = start_thread("the thread of the model " + info_.id, [this] { work(); });
    waiting_image_bytes_ = bytes;
    ++metrics_.queued;
    queue.push_back(std::move(item));
  }
  wake_.notify_one();
}

void ModelHost::submit(std::shared_ptr<GenerationRequest> request) { enqueue(waiting_texts_, std::move(request)); }
void ModelHost::submit(ModelJob job) { enqueue(waiting_jobs_, std::move(job)); }
void ModelHost::submit(BatchJob job) {
  const int64_t bytes = job.image_bytes();
  enqueue(waiting_batch_, std::move(job), bytes);
}

bool ModelHost::idle() {
  const std::lock_guard lock(mutex_);
  return !working_ && !waits();
}

bool ModelHost::unload_if_idle() {
  const std::unique_lock lock(model_mutex_, std::try_to_lock);
  if (!lock || !model_ || works_on_texts()) return false;
  texts_.reset();
  model_.reset();
  bytes_ = 0;
  ++metrics_.drops;
  return true;
}

void ModelHost::work() {
  const auto disconnected = [](const Cancelled& cancelled) { return cancelled && cancelled(); };
  const std::function<bool()> stop = [&] {
    return stopping_ || (!clients_.empty() && std::all_of(clients_.begin(), clients_.end(), disconnected));
  };
  const Interruptible interruptible(stop);  // a call may take minutes
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || waits(); });
    if (stopping_) break;
    working_ = true;
    lock.unlock();
    {
      const std::lock_guard model_lock(model_mutex_);  // before mutex_, which a request must not wait for while a model is unloaded
      lock.lock();
      last_used_ = ++uses;
      while (!stopping_ && (waits() || works_on_texts())) serve_round(lock);
      working_ = false;
      lock.unlock();
    }
    if (bytes_ > 0) make_room_(bytes_);  // another model may have been busy when this one was loaded
  }
  fail_all(std::make_exception_ptr(HttpError(503, "the server is stopping")));
}

void ModelHost::load_model() {
  make_room_(info_.parameters * (options_.weights == Weights::int8 ? 1 : 4));
  auto model = std::make_unique<LoadedModel>(info_, options_.weights);
  if (info_.task == ServedTask::generate) texts_ = std::make_unique<RunningTexts>(*model, options_.texts, metrics_);
  model_ = std::move(model);
  ++metrics_.loads;
}

void ModelHost::drop_cancelled() {
  const auto drop = [&](auto& queue) {
    const size_t dropped = std::erase_if(queue, [&](const auto& each) {
      const Cancelled& cancelled = cancelled_of(each);
      if (!cancelled || !cancelled()) return false;
      end_with(each, std::make_exception_ptr(HttpError(499, "the client has disconnected")));
      return true;
    });
    metrics_.queued -= static_cast<int64_t>(dropped);
  };
  drop(waiting_texts_);
  drop(waiting_batch_);
  drop(waiting_jobs_);
  waiting_image_bytes_ = 0;
  for (const BatchJob& each : waiting_batch_) waiting_image_bytes_ += each.image_bytes();
}

// Called with the lock of what waits, which is free while the model computes.
void ModelHost::serve_round(std::unique_lock<std::mutex>& lock) {
  drop_cancelled();
  std::vector<BatchJob> batch;
  int64_t tokens = 0;
  while (!waiting_batch_.empty() && (batch.empty() || tokens < options_.batch_tokens)) {
    tokens += waiting_batch_.front().tokens();
    waiting_image_bytes_ -= waiting_batch_.front().image_bytes();
    batch.push_back(std::move(waiting_batch_.front()));
    waiting_batch_.pop_front();
  }
  std::optional<ModelJob> job;
  if (!waiting_jobs_.empty()) {
    job = std::move(waiting_jobs_.front());
    waiting_jobs_.pop_front();
  }
  metrics_.queued -= std::ssize(batch) + (job ? 1 : 0);
  lock.unlock();
  const NoGrad no_grad;
  std::exception_ptr failure;
  try {
    if (!model_) load_model();
    bytes_ = std::max<int64_t>(1, model_->bytes());
  } catch (const std::exception& error) {
    failure = unavailable(info_.id, error);
  }
  if (failure) {
    for (BatchJob& each : batch) each.failed(failure);
    if (job) job->failed(failure);
    lock.lock();
    for (const auto& each : waiting_texts_) each->on_end(failure), --metrics_.queued;
    waiting_texts_.clear();
    return;
  }
  for (const BatchJob& each : batch) clients_.push_back(each.cancelled);
  if (!batch.empty()) run_batch_jobs(*model_, batch, metrics_);
  clients_.clear();
  if (job) try {
      clients_ = {job->cancelled};
      job->run(*model_);
    } catch (...) {
      job->failed(std::current_exception());
    }
  clients_.clear();
  lock.lock();
  if (texts_) start_waiting_texts();
  if (!works_on_texts()) return;
  lock.unlock();
  texts_->step();
  lock.lock();
}

void ModelHost::start_waiting_texts() {
  while (!waiting_texts_.empty() && texts_->has_room(*waiting_texts_.front())) {
    const std::shared_ptr<GenerationRequest> request = std::move(waiting_texts_.front());
    waiting_texts_.pop_front();
    --metrics_.queued;
    texts_->start(request);
  }
}

void ModelHost::fail_all(std::exception_ptr error) {
  if (texts_) texts_->fail(error);
  for (const auto& each : waiting_texts_) end_with(each, error);
  for (const BatchJob& each : waiting_batch_) end_with(each, error);
  for (const ModelJob& each : waiting_jobs_) end_with(each, error);
}

}  // namespace heed::serve
