#include "heed/serve/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed::serve {
namespace {

std::string token_text(const Tokenizer& tokenizer, int64_t id) {
  const auto narrow = static_cast<int32_t>(id);
  return tokenizer.has(id) ? tokenizer.decode(std::span(&narrow, 1), false) : "";
}

double log_sum_exp(std::span<const float> scores) {
  const float best = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += static_cast<double>(std::exp(score - best));
  return static_cast<double>(best) + std::log(sum);
}

std::vector<int64_t> best_tokens(std::span<const float> scores, int64_t count) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto better = [&](int64_t a, int64_t b) {
    const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  count = std::min(count, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), better);
  order.resize(static_cast<size_t>(count));
  return order;
}

Chooser chooser_for(const GenerationOptions& options) { return options.sample ? make_sampler(options.sampling) : Chooser(choose_best); }

}  // namespace

RunningText::RunningText(std::shared_ptr<const GenerationRequest> request, int64_t choice, const Model& model, const Tokenizer& tokenizer,
                         CachePool& pool)
    : request_(std::move(request)),
      model_(model),
      tokenizer_(tokenizer),
      pool_(pool),
      choice_(choice),
      rules_(request_->options, std::ssize(request_->prompt)),
      chooser_(chooser_for(request_->options)),
      tokens_(request_->prompt),
      text_(tokenizer, request_->stop) {
  start();
}

RunningText::~RunningText() { pool_.release(blocks_); }

// The last token is never read, so it needs no place in the pool.
int64_t RunningText::most_tokens() const { return std::min(rules_.max_length(), pool_.total() * CachePool::kBlockTokens + 1); }

void RunningText::start() {
  state_ = model_.decoder().start({{"input_ids", Tensor::from(request_->prompt, {1, std::ssize(request_->prompt)}, kCpu)}});
  state_.past = pool_.new_caches(std::max(most_tokens(), std::ssize(request_->prompt)));
  read_ = 0;
}

void RunningText::pause() {
  start();
  pool_.release(blocks_);
  blocks_ = 0;
}

std::unique_ptr<RunningText> RunningText::fork(int64_t choice) const {
  auto out = std::make_unique<RunningText>(request_, choice, model_, tokenizer_, pool_);
  out->begin_ = begin_;
  if (!pool_.take(blocks_)) return out;
  out->blocks_ = blocks_;
  for (size_t i = 0; i < state_.past.size(); ++i) out->state_.past[i].append(state_.past[i].keys(), state_.past[i].values());
  out->read_ = read_;
  return out;
}

int64_t RunningText::piece_end() const {
  return reads_prompt() ? std::min(read_ + request_->prompt_piece, std::ssize(request_->prompt)) : read_ + 1;
}

bool RunningText::fits() const { return pool_.blocks_for(std::ssize(tokens_) + 1) <= pool_.free(); }

int64_t RunningText::blocks_to_take() const {
  return reads_prompt() ? request_->choices * pool_.blocks_for(std::ssize(request_->prompt) + 1) - blocks_ : 0;
}

bool RunningText::take_blocks() {
  const int64_t more = pool_.blocks_for(piece_end()) - blocks_;
  if (more > 0 && !pool_.take(more)) return false;
  blocks_ += std::max<int64_t>(more, 0);
  return true;
}

std::vector<int64_t> RunningText::next_tokens() {
  const int64_t begin = read_;
  read_ = piece_end();
  return {tokens_.begin() + begin, tokens_.begin() + read_};
}

void RunningText::choose(std::span<float> logits) {
  next_ = {.choice = choice_};
  const int64_t wanted = request_->top_logprobs, before = std::ssize(request_->prompt);
  const double log_sum = wanted >= 0 ? log_sum_exp(logits) : 0;
  const auto score = [&](int64_t id) {
    return TokenScore{id, token_text(tokenizer_, id), static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum)};
  };
  std::vector<float> plain;  // rules and samplers change scores
  if (wanted >= 0) {
    for (const int64_t id : best_tokens(logits, wanted)) next_.top.push_back(score(id));
    plain.assign(logits.begin(), logits.end());
  }
  rules_.apply(logits, tokens_);
  const int64_t token = chooser_(logits, choice_, std::ssize(tokens_) - before);
  tokens_.push_back(token);
  next_.token.id = token;
  if (wanted >= 0) {
    logits = plain;
    next_.token = score(token);
  }
  const bool ended = rules_.ends(token);
  if (!ended) next_.text = text_.add(static_cast<int32_t>(token));
  if (ended || text_.stopped()) next_.finish = "stop";
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (next_.finish.empty() && (std::ssize(tokens_) >= most_tokens() || seconds > request_->max_seconds)) next_.finish = "length";
  if (!next_.finish.empty()) next_.text += text_.rest();
}

void RunningText::emit() {
  done_ = done_ || !next_.finish.empty();
  if (request_->on_token) request_->on_token(next_);
}

}  // namespace heed::serve
