#include "heed/models/generate.h"

#include <algorithm>

#include "heed/models/beam.h"
#include "heed/models/finite.h"
#include "heed/models/generate_rules.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

// Every text becomes `count` texts.
void multiply(BegunTexts& texts, int64_t count) {
  if (count == 1) return;
  TokenRow items;
  for (int64_t b = 0; b < std::ssize(texts.tokens); ++b) items.insert(items.end(), static_cast<size_t>(count), b);
  std::vector<TokenRow> tokens;
  for (int64_t b : items) tokens.push_back(texts.tokens[static_cast<size_t>(b)]);
  texts.tokens = std::move(tokens);
  texts.writing.reorder(items);
  texts.logits = index_select(texts.logits, 0, Tensor::from(items, {std::ssize(items)}));
}

// The next token of every text that has not ended.
class Choice {
 public:
  Choice(const GenerationOptions& options, const GenerationRules& rules)
      : rules_(rules),
        choose_(options.choose   ? options.choose
                : options.sample ? choose_by_chance(options.sampling)
                                 : Chooser(choose_best)),
        plain_(!options.choose && !options.sample && rules.none()) {}

  // logits: (B, V)
  TokenRow operator()(const Tensor& logits, const std::vector<TokenRow>& texts, const std::vector<bool>& ended) {
    if (plain_) return argmax(logits).to_vector<int64_t>();
    const auto V = static_cast<size_t>(logits.size(1));
    scores_.resize(static_cast<size_t>(logits.count()));
    logits.copy_to_host(std::as_writable_bytes(std::span(scores_)), DType::f32);
    TokenRow out(texts.size(), 0);
    for (size_t b = 0; b < texts.size(); ++b) {
      if (ended[b]) continue;
      const std::span<float> row = std::span(scores_).subspan(b * V, V);
      rules_.apply(row, texts[b]);
      out[b] = choose_(row, static_cast<int64_t>(b), std::ssize(texts[b]) - rules_.began());
    }
    return out;
  }

 private:
  const GenerationRules& rules_;
  Chooser choose_;
  bool plain_;  // nothing stands between the logits and the largest of them
  std::vector<float> scores_;
};

}  // namespace

Tensor generate(const Model& model, const Named& inputs, const GenerationOptions& options) {
  if (options.beams > 1) return beam_search(model, inputs, options).tokens;
  const NoGrad quiet;
  check(options.count == 1 || (options.count > 1 && (options.sample || options.choose)), "generate: ", options.count,
        " texts for each, expected 1, or sampling, or beams");
  BegunTexts texts = begin_texts(model, inputs, options);
  multiply(texts, options.count);
  const GenerationRules rules(options, std::ssize(texts.tokens[0]));
  const int64_t pad = options.pad >= 0 || options.end.empty() ? options.pad : options.end[0];
  std::vector<bool> ended(texts.tokens.size(), false);
  Choice choose(options, rules);
  for (int64_t length = rules.began() + 1;; ++length) {
    check_finite(model, texts.logits);
    TokenRow chosen = choose(texts.logits, texts.tokens, ended), told = chosen;
    for (size_t b = 0; b < chosen.size(); ++b) {
      if (ended[b]) {
        chosen[b] = pad;
        told[b] = -1;
      }
      texts.tokens[b].push_back(chosen[b]);
      ended[b] = ended[b] || rules.ends(chosen[b]);
    }
    if (options.told) options.told(told);
    if (length == rules.longest() || std::all_of(ended.begin(), ended.end(), [](bool x) { return x; })) break;
    texts.logits = model.decoder().step(texts.writing, Tensor::from(chosen, {std::ssize(chosen), 1}));
  }
  return tensor_of(texts.tokens);
}

}  // namespace heed
