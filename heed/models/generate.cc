#include "heed/models/generate.h"

#include <algorithm>

#include "heed/models/beam.h"
#include "heed/models/finite.h"
#include "heed/models/generate_rules.h"
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

// Chooses the next token of every sequence that has not ended.
class NextToken {
 public:
  NextToken(const GenerationOptions& options, const GenerationRules& rules)
      : rules_(rules),
        choose_(options.choose   ? options.choose
                : options.sample ? make_sampler(options.sampling)
                                 : Chooser(choose_best)),
        greedy_(!options.choose && !options.sample && rules.none()) {}

  // logits: (B, V)
  TokenRow operator()(const Tensor& logits, const std::vector<TokenRow>& sequences, const std::vector<bool>& ended) {
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
  const GenerationRules& rules_;
  Chooser choose_;
  bool greedy_;  // argmax without rules
  std::vector<float> scores_;
};

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
  NextToken choose(options, rules);
  for (int64_t length = rules.prompt_length() + 1;; ++length) {
    check_finite(model, batch.logits);
    TokenRow chosen = choose(batch.logits, batch.tokens, ended), reported = chosen;
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
    batch.logits = model.decoder().step(batch.state, Tensor::from(chosen, {std::ssize(chosen), 1}, kCpu));
  }
  return tensor_of(batch.tokens);
}

}  // namespace heed
