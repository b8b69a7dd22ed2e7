// Texts being generated: the request of a client, and the state of each sequence.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "heed/models/generate.h"
#include "heed/models/generate_rules.h"
#include "heed/serve/cache_pool.h"
#include "heed/serve/stop_texts.h"
#include "heed/text/tokenizer.h"

namespace heed::serve {

struct TokenScore {
  int64_t id = 0;
  std::string text = {};
  float logprob = 0;
};

// One more token of a text, or its end.
struct GeneratedToken {
  int64_t choice = 0;
  std::string text = {};             // that can be shown now: complete characters that cannot be part of a stop text
  TokenScore token = {};             // its log-probability is set if the request has top_logprobs
  std::vector<TokenScore> top = {};  // the most probable tokens here
  std::string finish = {};           // "stop" or "length" at the end of the text, else empty
};

struct GenerationRequest {
  std::vector<int64_t> prompt = {};
  GenerationOptions options = {};
  std::vector<std::string> stop = {};
  int64_t choices = 1;
  int64_t top_logprobs = -1;  // -1: none
  double max_seconds = 60;
  int64_t prompt_piece = 256;  // tokens of the prompt that are read in one step, so that other texts advance in between

  // Called by the model's thread.
  std::function<void(const GeneratedToken& token)> on_token = {};
  std::function<void(std::exception_ptr error)> on_end = {};  // after all choices; null: all went well
  std::function<bool()> cancelled = {};
};

// One choice of a request. Its keys and values are in blocks of the pool.
class RunningText {
 public:
  RunningText(std::shared_ptr<const GenerationRequest> request, int64_t choice, const Model& model, const Tokenizer& tokenizer,
              CachePool& pool);
  ~RunningText();
  RunningText(const RunningText&) = delete;
  RunningText& operator=(const RunningText&) = delete;

  const GenerationRequest& request() const { return *request_; }
  DecodeState& state() { return state_; }
  bool done() const { return done_; }
  bool reads_prompt() const { return read_ < std::ssize(request_->prompt); }
  bool read_all() const { return read_ == std::ssize(tokens_); }  // the logits that follow choose a token

  bool fits() const;                   // there are blocks for all its tokens
  int64_t blocks_to_take() const;      // for the rest of its prompt, and for choices that start when it has been read
  bool take_blocks();                  // for next_tokens(); false: the pool has too few
  std::vector<int64_t> next_tokens();  // of the prompt, in pieces that depend on the prompt alone; then one after the other
  // The next token and its scores from the logits (V) after next_tokens(). Any thread.
  void choose(std::span<float> logits);
  void emit();  // calls on_token. In the model's thread
  void stop() { done_ = true; }

  // Releases its blocks. Later it reads its tokens again, in the same pieces, so that all bits are the same.
  void pause();

  // A further choice that starts with the same prompt; paused if the pool has too few blocks.
  std::unique_ptr<RunningText> fork(int64_t choice) const;

 private:
  void start();
  int64_t piece_end() const;
  int64_t most_tokens() const;

  std::shared_ptr<const GenerationRequest> request_;
  const Model& model_;
  const Tokenizer& tokenizer_;
  CachePool& pool_;
  int64_t choice_, blocks_ = 0;
  DecodeState state_;
  GenerationRules rules_;
  Chooser chooser_;
  std::vector<int64_t> tokens_;  // prompt and text
  int64_t read_ = 0;             // tokens that the model has seen
  TextSoFar text_;
  GeneratedToken next_ = {};
  bool done_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace heed::serve
