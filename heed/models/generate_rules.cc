#include "heed/models/generate_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/models/parts.h"

namespace heed {
namespace {

using Row = TokenRow;
using Scores = std::span<float>;
constexpr float kNever = -std::numeric_limits<float>::infinity();

void forbid(Scores scores, int64_t token) {
  if (token >= 0 && token < std::ssize(scores)) scores[static_cast<size_t>(token)] = kNever;
}

void force(Scores scores, int64_t token) {
  check(token >= 0 && token < std::ssize(scores), "generate: the forced token ", token, " of ", scores.size());
  std::fill(scores.begin(), scores.end(), kNever);
  scores[static_cast<size_t>(token)] = 0;
}

// Tokens that stand in the text already become less likely: Keskar et al. 2019.
void penalise(Scores scores, const Row& text, float penalty) {
  Row once = text;
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (int64_t token : once)
    if (token >= 0 && token < std::ssize(scores)) {
      float& score = scores[static_cast<size_t>(token)];
      score = score < 0 ? score * penalty : score / penalty;
    }
}

// Whether the text ends with the first `count` tokens from `begin`.
bool ends_with(const Row& text, Row::const_iterator begin, int64_t count) {
  return std::ssize(text) >= count && std::equal(text.end() - count, text.end(), begin);
}

void forbid_repeats(Scores scores, const Row& text, int64_t size) {
  for (int64_t i = 0; i + size <= std::ssize(text); ++i)
    if (ends_with(text, text.begin() + i, size - 1)) forbid(scores, text[static_cast<size_t>(i + size - 1)]);
}

void renormalize(Scores scores) {
  const float best = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += static_cast<double>(std::exp(score - best));
  const float whole = best + static_cast<float>(std::log(sum));
  for (float& score : scores) score -= whole;
}

// What `transformers` takes for padding where nobody says: tokens that pad, unless they also end texts.
Named with_mask(Named inputs, const Tensor& tokens, const GenerationOptions& options) {
  if (inputs.contains("attention_mask") || options.pad < 0 || holds(options.end, options.pad)) return inputs;
  Row mask = tokens.to_vector<int64_t>();
  for (int64_t& each : mask) each = each == options.pad ? 0 : 1;
  inputs["attention_mask"] = Tensor::from(mask, tokens.shape());
  return inputs;
}

}  // namespace

GenerationRules::GenerationRules(const GenerationOptions& options, int64_t began)
    : options_(options),
      began_(began),
      longest_(options.max_length > 0 ? options.max_length : began + options.max_new_tokens),
      shortest_(options.min_new_tokens > 0 ? began + options.min_new_tokens : options.min_length) {
  // Nothing could follow where a banned token is forced.
  for (const int64_t forced : {options.forced_first, options.forced_last})
    check(forced < 0 || !holds(options.suppressed, forced), "generate: the forced token ", forced,
          " (forced_bos_token_id, forced_eos_token_id) is among suppress_tokens, expected it to be in one of them");
  check(longest_ > began, "generate: texts begin with ", began, " tokens, expected less than the max_length of ", longest_);
}

bool GenerationRules::none() const {
  return options_.repetition_penalty == 1 && options_.no_repeat <= 0 && options_.bad_words.empty() && shortest_ <= began_ &&
         options_.forced_first < 0 && options_.forced_last < 0 && options_.suppressed.empty() && options_.suppressed_first.empty() &&
         !options_.renormalize;
}

void GenerationRules::apply(Scores scores, const Row& text) const {
  const int64_t length = std::ssize(text);
  if (options_.repetition_penalty != 1) penalise(scores, text, options_.repetition_penalty);
  if (options_.no_repeat > 0) forbid_repeats(scores, text, options_.no_repeat);
  for (const Row& word : options_.bad_words)
    if (!(word.size() == 1 && ends(word[0])) && ends_with(text, word.begin(), std::ssize(word) - 1)) forbid(scores, word.back());
  if (length < shortest_)
    for (int64_t token : options_.end) forbid(scores, token);
  if (options_.forced_first >= 0 && length == 1) force(scores, options_.forced_first);
  if (options_.forced_last >= 0 && length == longest_ - 1) force(scores, options_.forced_last);
  for (int64_t token : options_.suppressed) forbid(scores, token);
  const bool first_is_forced = began_ == 1 && options_.forced_first >= 0;
  if (length == began_ + first_is_forced)
    for (int64_t token : options_.suppressed_first) forbid(scores, token);
  if (options_.renormalize) renormalize(scores);
}

BegunTexts begin_texts(const Model& model, const Named& inputs, const GenerationOptions& options) {
  const TextDecoder& decoder = model.decoder();
  const Tensor given_tokens = tokens_in(inputs, "input_ids");
  const int64_t B = given_tokens.size(0);
  check(B > 0, "generate: found no texts, expected at least one to go on from");
  check(!decoder.encoder || options.start >= 0, "generate: no decoder_start_token_id, expected one to begin with");
  BegunTexts out{.tokens = decoder.encoder ? std::vector<Row>(static_cast<size_t>(B), Row{options.start})
                                           : rows_of(given_tokens, B, given_tokens.size(1)),
                 .writing = decoder.start(with_mask(inputs, given_tokens, options))};
  out.logits = decoder.step(out.writing, tensor_of(out.tokens));
  return out;
}

Tensor tensor_of(const std::vector<Row>& rows) {
  Row flat;
  for (const Row& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return Tensor::from(flat, {std::ssize(rows), std::ssize(flat) / std::max<int64_t>(std::ssize(rows), 1)});
}

}  // namespace heed
