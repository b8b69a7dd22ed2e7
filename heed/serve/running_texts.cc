#include "heed/serve/running_texts.h"

#include <set>

#include "heed/core/parallel.h"
#include "heed/models/finite.h"
#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

constexpr int64_t kMostPromptTokens = 512;  // in a step, unless a single prompt has more

}  // namespace

RunningTexts::RunningTexts(const LoadedModel& model, const TextsOptions& options, Metrics& metrics)
    : model_(model), options_(options), metrics_(metrics), pool_(model.model(), options.cache_bytes) {
  metrics_.cache_blocks += pool_.total();
}

RunningTexts::~RunningTexts() {
  running_.clear();
  paused_.clear();
  count();
  metrics_.cache_blocks -= pool_.total();
}

void RunningTexts::count() {
  metrics_.running += std::ssize(running_) - counted_running_;
  metrics_.cache_blocks_used += pool_.used() - counted_blocks_;
  counted_running_ = std::ssize(running_);
  counted_blocks_ = pool_.used();
}

bool RunningTexts::has_room(const GenerationRequest& request) const {
  if (empty()) return true;
  if (!paused_.empty()) return false;
  int64_t choices = request.choices, blocks = request.choices * pool_.blocks_for(std::ssize(request.prompt) + 1);
  for (const auto& [ignored, left] : unfinished_) choices += left;  // also those that start when their prompt has been read
  for (const auto& each : running_) blocks += each->blocks_to_take();
  return choices <= options_.most_running && blocks <= pool_.free();
}

void RunningTexts::start(const std::shared_ptr<GenerationRequest>& request) {
  try {
    const int64_t tokens = std::ssize(request->prompt);
    require(pool_.blocks_for(tokens + 1) <= pool_.total(), 422, "prompt: found ", tokens, " tokens, the memory for keys and values holds ",
            pool_.total() * CachePool::kBlockTokens, "; --cache sets its size");
    running_.push_back(std::make_unique<RunningText>(request, 0, model_.model(), model_.text().tokenizer, pool_));
    unfinished_[request.get()] = request->choices;
    metrics_.prompt_tokens += tokens;
  } catch (...) {
    request->on_end(std::current_exception());
  }
}

void RunningTexts::stop_cancelled() {
  for (Texts* texts : {&running_, &paused_})
    for (const auto& each : *texts) {
      if (!each->request().cancelled || !each->request().cancelled()) continue;
      each->stop();
      if (unfinished_.erase(&each->request()) > 0)
        each->request().on_end(std::make_exception_ptr(HttpError(499, "the client has disconnected")));
    }
  remove_done();
}

void RunningTexts::resume_paused() {
  while (!paused_.empty()) {
    if (!running_.empty() && !paused_.front()->fits()) return;
    running_.splice(running_.end(), paused_, paused_.begin());
  }
}

// Takes the blocks for the next step of a text. If there are too few, pauses the youngest texts, if need be this one. -> whether it has
// them
bool RunningTexts::make_room(Texts::iterator text) {
  while (!(*text)->take_blocks()) {
    const auto youngest = std::prev(running_.end());
    (*youngest)->pause();
    ++metrics_.pauses;
    paused_.splice(paused_.begin(), running_, youngest);
    if (youngest == text) return false;
  }
  return true;
}

void RunningTexts::step() {
  stop_cancelled();
  resume_paused();
  try {
    advance();
  } catch (...) {
    fail(std::current_exception());
  }
  remove_done();
  count();
}

void RunningTexts::advance() {
  std::vector<SequenceStep> steps;
  std::vector<RunningText*> chosen;  // those that get a token now
  std::vector<int64_t> rows;
  int64_t tokens = 0, prompt_tokens = 0;
  for (auto at = running_.begin(); at != running_.end(); ++at) {
    RunningText& text = **at;
    if (text.reads_prompt() && prompt_tokens >= kMostPromptTokens) continue;  // the next step
    if (!make_room(at)) break;                                                // it was the last one
    std::vector<int64_t> next = text.next_tokens();
    tokens += std::ssize(next);
    if (next.size() > 1) prompt_tokens += std::ssize(next);
    if (text.read_all()) {
      chosen.push_back(&text);
      rows.push_back(std::ssize(steps));
    }
    steps.push_back({&text.state(), std::move(next)});
  }
  if (steps.empty()) return;
  const Tensor logits = model_.model().decoder().step_together(steps);
  metrics_.batch(std::ssize(steps), tokens);
  check_finite(model_.model(), logits);
  std::vector<float> scores = logits.to_vector<float>();
  const auto V = static_cast<size_t>(logits.size(1));
  const auto scores_of = [&](size_t i) { return std::span(scores).subspan(static_cast<size_t>(rows[i]) * V, V); };
  std::vector<std::pair<RunningText*, std::vector<float>>> forks;
  for (size_t i = 0; i < rows.size(); ++i) forks_of(*chosen[i], scores_of(i), forks);
  const auto firsts = std::ssize(rows);
  parallel_tasks(firsts + std::ssize(forks), [&](int64_t i) {
    if (i < firsts)
      chosen[static_cast<size_t>(i)]->choose(scores_of(static_cast<size_t>(i)));
    else
      forks[static_cast<size_t>(i - firsts)].first->choose(forks[static_cast<size_t>(i - firsts)].second);
  });
  for (const auto& [text, ignored] : forks) chosen.push_back(text);
  for (RunningText* text : chosen) text->emit();
  metrics_.generated_tokens += std::ssize(chosen);
}

// Further choices of a prompt start from the logits after the prompt.
void RunningTexts::forks_of(RunningText& text, std::span<const float> scores,
                            std::vector<std::pair<RunningText*, std::vector<float>>>& forks) {
  const GenerationRequest& request = text.request();
  if (text.state().length() != std::ssize(request.prompt)) return;
  for (int64_t choice = 1; choice < request.choices; ++choice) {
    std::unique_ptr<RunningText> fork = text.fork(choice);
    forks.emplace_back(fork.get(), std::vector<float>(scores.begin(), scores.end()));
    Texts& texts = fork->read_all() ? running_ : paused_;
    texts.push_back(std::move(fork));
  }
}

void RunningTexts::remove_done() {
  for (Texts* texts : {&running_, &paused_})
    for (auto at = texts->begin(); at != texts->end();) {
      if (!(*at)->done()) {
        ++at;
        continue;
      }
      const auto left = unfinished_.find(&(*at)->request());
      if (left != unfinished_.end() && --left->second == 0) {
        unfinished_.erase(left);
        (*at)->request().on_end(nullptr);
      }
      at = texts->erase(at);
    }
}

void RunningTexts::fail(const std::exception_ptr& error) {
  std::set<const GenerationRequest*> failed;
  for (const Texts* texts : {&running_, &paused_})
    for (const auto& each : *texts)
      if (failed.insert(&each->request()).second) each->request().on_end(error);
  running_.clear();
  paused_.clear();
  unfinished_.clear();
}

}  // namespace heed::serve
