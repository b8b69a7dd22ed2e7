#include "heed/serve/model_host.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/core/parallel.h"
#include "heed/core/thread.h"
#include "heed/models/finite.h"
#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

std::atomic<int64_t> uses{0};               // of all models
constexpr int64_t kMostPromptTokens = 512;  // in a round, unless a single prompt has more

// Loading fails for reasons that the client cannot change.
std::exception_ptr unavailable(const std::string& id, const std::exception& error) {
  return std::make_exception_ptr(HttpError(503, id + ": cannot be loaded: " + error.what()));
}

std::vector<float> row_of(const Tensor& x, int64_t row) { return slice(x, 0, row, row + 1).to_vector<float>(); }

}  // namespace

ModelHost::ModelHost(ModelInfo info, const HostOptions& options, Metrics& metrics, std::function<void(int64_t bytes)> make_room)
    : info_(std::move(info)), options_(options), metrics_(metrics), make_room_(std::move(make_room)) {
  thread_ = start_thread("the thread of the model " + info_.id, [this] { work(); });
}

ModelHost::~ModelHost() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
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

void ModelHost::admit() {
  require(!stopping_, 503, "the server is stopping");
  const auto waiting = static_cast<int64_t>(waiting_texts_.size() + waiting_sentences_.size() + waiting_jobs_.size());
  require(waiting < options_.most_waiting, 429, info_.id, ": ", waiting, " requests wait already; try again later");
  ++metrics_.queued;
}

void ModelHost::submit(std::shared_ptr<GenerationRequest> request) {
  {
    const std::lock_guard lock(mutex_);
    admit();
    waiting_texts_.push_back(std::move(request));
  }
  wake_.notify_one();
}

void ModelHost::submit(SentenceJob job) {
  {
    const std::lock_guard lock(mutex_);
    admit();
    waiting_sentences_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void ModelHost::submit(ModelJob job) {
  {
    const std::lock_guard lock(mutex_);
    admit();
    waiting_jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

bool ModelHost::unload_if_idle() {
  const std::unique_lock lock(model_mutex_, std::try_to_lock);
  if (!lock || !model_ || !running_.empty()) return false;
  model_.reset();
  bytes_ = 0;
  ++metrics_.drops;
  return true;
}

void ModelHost::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    const auto waits = [&] { return !waiting_texts_.empty() || !waiting_sentences_.empty() || !waiting_jobs_.empty(); };
    wake_.wait(lock, [&] { return stopping_ || waits(); });
    if (stopping_) break;
    const std::lock_guard model_lock(model_mutex_);
    last_used_ = ++uses;
    while (!stopping_ && (waits() || !running_.empty())) serve_round(lock);
  }
  fail_all(std::make_exception_ptr(HttpError(503, "the server is stopping")));
}

// Called with the lock of what waits, which is free while the model computes.
void ModelHost::serve_round(std::unique_lock<std::mutex>& lock) {
  std::vector<SentenceJob> sentences;
  int64_t tokens = 0;
  while (!waiting_sentences_.empty() && (sentences.empty() || tokens < options_.batch_tokens)) {
    for (const Encoding& each : waiting_sentences_.front().sentences) tokens += each.size();
    sentences.push_back(std::move(waiting_sentences_.front()));
    waiting_sentences_.pop_front();
  }
  std::optional<ModelJob> job;
  if (!waiting_jobs_.empty()) {
    job = std::move(waiting_jobs_.front());
    waiting_jobs_.pop_front();
  }
  metrics_.queued -= std::ssize(sentences) + (job ? 1 : 0);
  lock.unlock();
  const NoGrad no_grad;
  std::exception_ptr failure;
  try {
    if (!model_) {
      make_room_(info_.parameters * (options_.weights == Weights::int8 ? 1 : 4));
      model_ = std::make_unique<LoadedModel>(info_, options_.weights);
      ++metrics_.loads;
    }
    bytes_ = std::max<int64_t>(1, model_->bytes());
  } catch (const std::exception& error) {
    failure = unavailable(info_.id, error);
  }
  if (failure) {
    for (SentenceJob& each : sentences) each.failed(failure);
    if (job) job->failed(failure);
    lock.lock();
    for (const auto& each : waiting_texts_) each->on_end(failure), --metrics_.queued;
    waiting_texts_.clear();
    return;
  }
  if (!sentences.empty()) run_sentences(std::move(sentences));
  if (job) try {
      job->run(*model_);
    } catch (...) {
      job->failed(std::current_exception());
    }
  start_waiting_texts();
  if (!running_.empty()) step_texts();
  lock.lock();
}

void ModelHost::run_sentences(std::vector<SentenceJob> jobs) {
  for (const bool embed : {true, false}) {
    std::vector<Encoding> all;
    std::vector<SentenceJob*> taken;
    int64_t tokens = 0;
    for (SentenceJob& each : jobs) {
      if (each.embed != embed) continue;
      taken.push_back(&each);
      for (Encoding& sentence : each.sentences) {
        tokens += sentence.size();
        all.push_back(std::move(sentence));
      }
    }
    if (all.empty()) continue;
    try {
      const TensorMap out = run_together(embed ? model_->embedder() : model_->text(), all);
      metrics_.batch(std::ssize(all), tokens);
      metrics_.prompt_tokens += tokens;
      const auto found = out.find(embed ? "last_hidden_state" : out.contains("logits") ? "logits" : "seq_relationship_logits");
      require(found != out.end(), 422, info_.id, ": ", info_.architecture, " has no such output");
      int64_t row = 0, begin = 0;
      for (SentenceJob* each : taken) {
        std::vector<std::vector<float>> rows;
        for (size_t i = 0; i < each->sentences.size(); ++i, ++row) {
          const int64_t length = all[static_cast<size_t>(row)].size();
          rows.push_back(
              embed ? row_of(pool_sentences(slice(found->second, 1, begin, begin + length), std::span(&length, 1), model_->embed_options()),
                             0)
                    : row_of(found->second, row));
          begin += length;
        }
        each->done(*model_, std::move(rows));
      }
    } catch (...) {
      for (SentenceJob* each : taken) each->failed(std::current_exception());
    }
  }
}

void ModelHost::start_waiting_texts() {
  std::vector<std::shared_ptr<GenerationRequest>> taken;
  {
    const std::lock_guard lock(mutex_);
    auto places = options_.most_running - std::ssize(running_);
    while (!waiting_texts_.empty() && (places >= waiting_texts_.front()->choices || running_.empty())) {
      places -= waiting_texts_.front()->choices;
      taken.push_back(std::move(waiting_texts_.front()));
      waiting_texts_.pop_front();
      --metrics_.queued;
      if (places <= 0) break;
    }
  }
  for (std::shared_ptr<GenerationRequest>& each : taken) try {
      const Tensor prompt = Tensor::from(each->prompt, {1, std::ssize(each->prompt)}, kCpu);
      running_.push_back(
          std::make_unique<RunningText>(each, 0, model_->model().decoder().start({{"input_ids", prompt}}), model_->text().tokenizer));
      unfinished_[each.get()] = each->choices;
      metrics_.prompt_tokens += std::ssize(each->prompt);
    } catch (...) {
      each->on_end(std::current_exception());
    }
}

void ModelHost::step_texts() {
  std::vector<SequenceStep> steps;
  std::vector<RunningText*> chosen;  // those that get a token now
  std::vector<int64_t> rows;
  int64_t tokens = 0, prompt_tokens = 0;
  for (const auto& each : running_) {
    if (each->request().cancelled && each->request().cancelled()) {
      each->stop();
      continue;
    }
    if (each->prefilling() && prompt_tokens >= kMostPromptTokens) continue;  // the next round
    std::vector<int64_t> next = each->next_tokens();
    tokens += std::ssize(next);
    if (next.size() > 1) prompt_tokens += std::ssize(next);
    if (!each->prefilling()) {
      chosen.push_back(each.get());
      rows.push_back(std::ssize(steps));
    }
    steps.push_back({&each->state(), std::move(next)});
  }
  try {
    if (!steps.empty()) {
      const Tensor logits = model_->model().decoder().step_together(steps);
      metrics_.batch(std::ssize(steps), tokens);
      check_finite(model_->model(), logits);
      std::vector<float> scores = logits.to_vector<float>();
      const auto V = static_cast<size_t>(logits.size(1));
      const auto scores_of = [&](size_t i) { return std::span(scores).subspan(static_cast<size_t>(rows[i]) * V, V); };
      // Further choices of a prompt that is read now start from the same logits.
      std::vector<std::pair<RunningText*, std::vector<float>>> forks;
      for (size_t i = 0; i < rows.size(); ++i) {
        const GenerationRequest& request = chosen[i]->request();
        if (chosen[i]->state().length() != std::ssize(request.prompt)) continue;
        for (int64_t choice = 1; choice < request.choices; ++choice) {
          running_.push_back(chosen[i]->fork(choice));
          forks.emplace_back(running_.back().get(), std::vector<float>(scores_of(i).begin(), scores_of(i).end()));
        }
      }
      const auto first_forks = std::ssize(rows);
      parallel_tasks(first_forks + std::ssize(forks), [&](int64_t i) {
        if (i < first_forks)
          chosen[static_cast<size_t>(i)]->choose(scores_of(static_cast<size_t>(i)));
        else
          forks[static_cast<size_t>(i - first_forks)].first->choose(forks[static_cast<size_t>(i - first_forks)].second);
      });
      for (const auto& [text, ignored] : forks) chosen.push_back(text);
      for (RunningText* text : chosen) text->emit();
      metrics_.generated_tokens += std::ssize(chosen);
    }
  } catch (...) {
    fail_all(std::current_exception());
    return;
  }
  for (auto at = running_.begin(); at != running_.end();) {
    if (!(*at)->done()) {
      ++at;
      continue;
    }
    const auto left = unfinished_.find(&(*at)->request());
    if (left != unfinished_.end() && --left->second == 0) {
      unfinished_.erase(left);
      (*at)->request().on_end(nullptr);
    }
    at = running_.erase(at);
  }
  metrics_.running = std::ssize(running_);
}

void ModelHost::fail_all(std::exception_ptr error) {
  std::set<const GenerationRequest*> failed;
  for (const auto& each : running_)
    if (failed.insert(&each->request()).second) each->request().on_end(error);
  running_.clear();
  unfinished_.clear();
  if (!stopping_) return;
  for (const auto& each : waiting_texts_) each->on_end(error);
  for (SentenceJob& each : waiting_sentences_) each.failed(error);
  for (ModelJob& each : waiting_jobs_) each.failed(error);
}

}  // namespace heed::serve
