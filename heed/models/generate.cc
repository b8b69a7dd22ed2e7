#include "heed/models/generate.h"

#include <algorithm>
#include <memory>

#include "heed/models/beam.h"
#include "heed/models/finite.h"
#include "heed/models/generate_rules.h"
#include "heed/models/token_steps.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

// Repeats every sequence `count` times.
void repeat(DecodeBatch& batch, int64_t count) {
  if (count == 1) return;
  TokenRow items;
  for (int64_t b = 0; b < std::ssize(batch.tokens); ++b) items.insert(items.end(), static_cast<size_t>(count), b);
  std::vector<TokenRow> tokens;
  for (int64_t b : items) tokens.push_back(batch.tokens[static_cast<size_t>(b)]);
  batch.tokens = std::move(tokens);
  batch.state.reorder(items);
  batch.logits = index_select(batch.logits, 0, Tensor::from(items, {std::ssize(items)}, batch.logits.device()));
}

// Where the next tokens of the sequences come from.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual TokenRow operator()(const std::vector<TokenRow>& sequences, const std::vector<bool>& ended) = 0;
};

// Chosen on the host, from logits after every rule.
class ChosenOnHost : public TokenSource {
 public:
  ChosenOnHost(const Model& model, DecodeBatch& batch, const GenerationOptions& options, const GenerationRules& rules)
      : model_(model),
        batch_(batch),
        rules_(rules),
        choose_(options.choose   ? options.choose
                : options.sample ? make_sampler(options.sampling)
                                 : Chooser(choose_best)),
        greedy_(!options.choose && !options.sample && rules.none()) {}

  TokenRow operator()(const std::vector<TokenRow>& sequences, const std::vector<bool>& ended) override {
    if (started_) {
      TokenRow last;
      for (const TokenRow& each : sequences) last.push_back(each.back());
      batch_.logits = model_.decoder().step(batch_.state, Tensor::from(last, {std::ssize(last), 1}, kCpu));
    }
    started_ = true;
    const Tensor& logits = batch_.logits;  // (B, V)
    check_finite(model_, logits);
    if (greedy_) return argmax(logits).to_vector<int64_t>();
    const auto V = static_cast<size_t>(logits.size(1));
    scores_.resize(static_cast<size_t>(logits.count()));
    logits.copy_to_host(std::as_writable_bytes(std::span(scores_)), DType::f32);
    TokenRow out(sequences.size(), 0);
    for (size_t b = 0; b < sequences.size(); ++b) {
      if (ended[b]) continue;
      const std::span<float> row = std::span(scores_).subspan(b * V, V);
      rules_.apply(row, sequences[b]);
      out[b] = choose_(row, static_cast<int64_t>(b), std::ssize(sequences[b]) - rules_.prompt_length());
    }
    return out;
  }

 private:
  const Model& model_;
  DecodeBatch& batch_;
  const GenerationRules& rules_;
  Chooser choose_;
  bool greedy_;  // argmax without rules
  bool started_ = false;
  std::vector<float> scores_;
};

// Chosen on the GPU, and read in blocks. Tokens after the end of a sequence are computed and not used.
class ChosenOnDevice : public TokenSource {
 public:
  ChosenOnDevice(const Model& model, std::shared_ptr<TokenSteps> steps, const GenerationOptions& options, const GenerationRules& rules)
      : model_(model), steps_(std::move(steps)), left_(rules.max_length() - rules.prompt_length()) {
    if (options.on_tokens) block_ = 1;
    if (!options.on_tokens && options.end.empty()) block_ = std::max<int64_t>(left_, 1);
  }

  TokenRow operator()(const std::vector<TokenRow>&, const std::vector<bool>&) override {
    if (at_ == read_.size()) {
      read_ = steps_->next(std::clamp<int64_t>(left_, 1, block_));
      left_ -= std::ssize(read_);
      at_ = 0;
    }
    TokenRow& row = read_[at_++];
    if (contains(row, -1)) {
      check_finite(model_, steps_->logits());
      fail("generate: the scores of a token are NaN or infinite");
    }
    return std::move(row);
  }

 private:
  const Model& model_;
  std::shared_ptr<TokenSteps> steps_;
  int64_t left_, block_ = 16;
  std::vector<TokenRow> read_ = {};
  size_t at_ = 0;
};

std::unique_ptr<TokenSource> token_source(const Model& model, DecodeBatch& batch, const GenerationOptions& options,
                                          const GenerationRules& rules) {
  if (!options.choose && rules.none() && model.decoder().on_device) {
    TokenStepsOptions on_device{.max_length = rules.max_length(), .precision = options.precision};
    if (options.sample) {
      check_sampling(options.sampling);
      on_device.sampling = options.sampling;
    }
    if (std::shared_ptr<TokenSteps> steps = model.decoder().on_device(batch.state, batch.logits, on_device))
      return std::make_unique<ChosenOnDevice>(model, std::move(steps), options, rules);
  }
  return std::make_unique<ChosenOnHost>(model, batch, options, rules);
}

}  // namespace

Tensor generate(const Model& model, const TensorMap& inputs, const GenerationOptions& options) {
  if (options.beams > 1) return beam_search(model, inputs, options).tokens;
  const NoGrad no_grad;
  check(options.count == 1 || (options.count > 1 && (options.sample || options.choose)), "generate: ", options.count,
        " outputs per input, expected 1, or sampling, or beams");
  DecodeBatch batch = prefill(model, inputs, options);
  repeat(batch, options.count);
  const GenerationRules rules(options, std::ssize(batch.tokens[0]));
  const int64_t pad = options.pad >= 0 || options.end.empty() ? options.pad : options.end[0];
  std::vector<bool> ended(batch.tokens.size(), false);
  const std::unique_ptr<TokenSource> next = token_source(model, batch, options, rules);
  for (int64_t length = rules.prompt_length() + 1;; ++length) {
    TokenRow chosen = (*next)(batch.tokens, ended), reported = chosen;
    for (size_t b = 0; b < chosen.size(); ++b) {
      if (ended[b]) {
        chosen[b] = pad;
        reported[b] = -1;
      }
      batch.tokens[b].push_back(chosen[b]);
      ended[b] = ended[b] || rules.ends(chosen[b]);
    }
    if (options.on_tokens) options.on_tokens(reported);
    if (length == rules.max_length() || std::all_of(ended.begin(), ended.end(), [](bool x) { return x; })) break;
  }
  return tensor_of(batch.tokens);
}

}  // namespace heed
