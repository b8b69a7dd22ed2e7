#include "heed/models/generate_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/models/architecture.h"
#include "heed/models/parts.h"

namespace heed {
namespace {

using Tokens = TokenRow;
using Scores = std::span<float>;
constexpr float kNever = -std::numeric_limits<float>::infinity();

void forbid(Scores scores, int64_t token) {
  if (token >= 0 && token < std::ssize(scores)) scores[static_cast<size_t>(token)] = kNever;
}

// One of these is the next token.
void force(Scores scores, std::span<const int64_t> tokens) {
  std::fill(scores.begin(), scores.end(), kNever);
  for (const int64_t token : tokens) {
    check(token >= 0 && token < std::ssize(scores), "generate: the forced token ", token, " of ", scores.size());
    scores[static_cast<size_t>(token)] = 0;
  }
}

// Repetition penalty: tokens that are already in the text become less likely (Keskar et al. 2019).
void penalize(Scores scores, const Tokens& text, float penalty) {
  Tokens once = text;
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (int64_t token : once)
    if (token >= 0 && token < std::ssize(scores)) {
      float& score = scores[static_cast<size_t>(token)];
      score = score < 0 ? score * penalty : score / penalty;
    }
}

// Whether the text ends with the `count` tokens from `begin`.
bool ends_with(const Tokens& text, Tokens::const_iterator begin, int64_t count) {
  return std::ssize(text) >= count && std::equal(text.end() - count, text.end(), begin);
}

void forbid_repeats(Scores scores, const Tokens& text, int64_t size) {
  for (int64_t i = 0; i + size <= std::ssize(text); ++i)
    if (ends_with(text, text.begin() + i, size - 1)) forbid(scores, text[static_cast<size_t>(i + size - 1)]);
}

void renormalize(Scores scores) {
  const float best = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += static_cast<double>(std::exp(score - best));
  const float log_sum = best + static_cast<float>(std::log(sum));
  for (float& score : scores) score -= log_sum;
}

// The default mask of `transformers`: padding tokens are masked, unless the padding token is also an end token.
TensorMap with_mask(TensorMap inputs, const Tensor& tokens, const GenerationOptions& options) {
  if (inputs.contains("attention_mask") || options.pad < 0 || contains(options.end, options.pad)) return inputs;
  Tokens mask = tokens.to_vector<int64_t>();
  for (int64_t& each : mask) each = each == options.pad ? 0 : 1;
  inputs["attention_mask"] = Tensor::from(mask, tokens.shape(), kCpu);
  return inputs;
}

}  // namespace

GenerationRules::GenerationRules(const GenerationOptions& options, int64_t prompt_length)
    : options_(options),
      prompt_length_(prompt_length),
      max_length_(options.max_length > 0 ? options.max_length : prompt_length + options.max_new_tokens),
      min_length_(options.min_new_tokens > 0 ? prompt_length + options.min_new_tokens : options.min_length) {
  // If a forced token were suppressed, no token would be left.
  std::vector<int64_t> all_forced = options.forced_last;
  if (options.forced_first >= 0) all_forced.push_back(options.forced_first);
  for (const int64_t forced : all_forced)
    check(!contains(options.suppressed, forced), "generate: the forced token ", forced,
          " (forced_bos_token_id, forced_eos_token_id) is in suppress_tokens, expected it in one of them only");
  check(max_length_ > prompt_length, "generate: a prompt of ", prompt_length, " tokens, expected less than the max_length of ",
        max_length_);
}

bool GenerationRules::none() const {
  return options_.repetition_penalty == 1 && options_.no_repeat <= 0 && options_.bad_words.empty() && min_length_ <= prompt_length_ &&
         options_.forced_first < 0 && options_.forced_last.empty() && options_.suppressed.empty() && options_.suppressed_first.empty() &&
         !options_.renormalize;
}

void GenerationRules::apply(Scores scores, const Tokens& text) const {
  const int64_t length = std::ssize(text);
  if (options_.repetition_penalty != 1) penalize(scores, text, options_.repetition_penalty);
  if (options_.no_repeat > 0) forbid_repeats(scores, text, options_.no_repeat);
  for (const Tokens& word : options_.bad_words)
    if (!(word.size() == 1 && ends(word[0])) && ends_with(text, word.begin(), std::ssize(word) - 1)) forbid(scores, word.back());
  if (length < min_length_)
    for (int64_t token : options_.end) forbid(scores, token);
  if (options_.forced_first >= 0 && length == 1) force(scores, {&options_.forced_first, 1});
  if (!options_.forced_last.empty() && length == max_length_ - 1) force(scores, options_.forced_last);
  for (int64_t token : options_.suppressed) forbid(scores, token);
  const bool first_is_forced = prompt_length_ == 1 && options_.forced_first >= 0;
  if (length == prompt_length_ + first_is_forced)
    for (int64_t token : options_.suppressed_first) forbid(scores, token);
  if (options_.renormalize) renormalize(scores);
}

DecodeBatch prefill(const Model& model, const TensorMap& inputs, const GenerationOptions& options) {
  const TextDecoder& decoder = model.decoder();
  const bool image = decoder.encoder && model.family().pixels;
  const Tensor ids = image ? Tensor() : token_input(inputs, "input_ids");
  const int64_t B = (image ? required_input(inputs, "pixel_values") : ids).size(0);
  check(B > 0, "generate: found no sequences, expected at least one");
  check(!decoder.encoder || options.start >= 0, "generate: no decoder_start_token_id, expected one to start with");
  DecodeBatch out{
      .tokens = decoder.encoder ? std::vector<Tokens>(static_cast<size_t>(B), Tokens{options.start}) : rows_of(ids, B, ids.size(1)),
      .state = decoder.start(image ? inputs : with_mask(inputs, ids, options))};
  out.logits = decoder.step(out.state, tensor_of(out.tokens));
  return out;
}

Tensor tensor_of(const std::vector<Tokens>& rows) {
  Tokens flat;
  for (const Tokens& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return Tensor::from(flat, {std::ssize(rows), std::ssize(flat) / std::max<int64_t>(std::ssize(rows), 1)}, kCpu);
}

}  // namespace heed
