#include "heed/models/generate.h"

#include <algorithm>
#include <limits>

#include "heed/models/config.h"
#include "heed/models/parts.h"

namespace heed {
namespace {

using Row = std::vector<int64_t>;
using Scores = std::vector<float>;
constexpr float kNever = -std::numeric_limits<float>::infinity();

bool holds(const Row& row, int64_t token) { return std::find(row.begin(), row.end(), token) != row.end(); }

void forbid(Scores& scores, int64_t token) {
  if (token >= 0 && token < std::ssize(scores)) scores[static_cast<size_t>(token)] = kNever;
}

void force(Scores& scores, int64_t token) {
  check(token >= 0 && token < std::ssize(scores), "generate: the forced token ", token, " of ", scores.size());
  std::fill(scores.begin(), scores.end(), kNever);
  scores[static_cast<size_t>(token)] = 0;
}

// Tokens that stand in the text already become less likely: Keskar et al. 2019.
void penalise(Scores& scores, const Row& text, float penalty) {
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

void forbid_repeats(Scores& scores, const Row& text, int64_t size) {
  for (int64_t i = 0; i + size <= std::ssize(text); ++i)
    if (ends_with(text, text.begin() + i, size - 1)) forbid(scores, text[static_cast<size_t>(i + size - 1)]);
}

void apply_rules(Scores& scores, const Row& text, int64_t began, const GenerationOptions& options) {
  const int64_t length = std::ssize(text);
  if (options.repetition_penalty != 1) penalise(scores, text, options.repetition_penalty);
  if (options.no_repeat > 0) forbid_repeats(scores, text, options.no_repeat);
  for (const Row& word : options.bad_words)
    if (!(word.size() == 1 && holds(options.end, word[0])) && ends_with(text, word.begin(), std::ssize(word) - 1))
      forbid(scores, word.back());
  if (length < options.min_length)
    for (int64_t token : options.end) forbid(scores, token);
  if (options.forced_first >= 0 && length == 1) force(scores, options.forced_first);
  if (options.forced_last >= 0 && length == options.max_length - 1) force(scores, options.forced_last);
  for (int64_t token : options.suppressed) forbid(scores, token);
  if (length == began)
    for (int64_t token : options.suppressed_first) forbid(scores, token);
}

Row token_list(const Config& config, std::string_view key) {
  const auto found = config.json().find(key);
  if (found == config.json().end() || found->is_null()) return {};
  if (found->is_number_integer()) return {config.size(key, 0, 0)};
  const bool whole = found->is_array() && std::all_of(found->begin(), found->end(), [](const Json& x) { return x.is_number_integer(); });
  if (!whole) config.refuse(key, "a token or a list of tokens");
  return found->get<Row>();
}

int64_t token(const Config& config, std::string_view key) { return config.size(key, -1, 0); }

Tensor tensor_of(const std::vector<Row>& rows) {
  Row flat;
  for (const Row& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return Tensor::from(flat, {std::ssize(rows), std::ssize(flat) / std::max<int64_t>(std::ssize(rows), 1)});
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

std::vector<int64_t> choose_best(const std::vector<std::vector<float>>& scores) {
  std::vector<int64_t> out;
  for (const Scores& row : scores) out.push_back(std::max_element(row.begin(), row.end()) - row.begin());
  return out;
}

GenerationOptions generation_options(const Model& model) {
  const bool own = !model.generation().is_null();
  const Config config(own ? model.generation() : model.config(), own ? "generation_config.json" : "config.json");
  config.only("encoder_no_repeat_ngram_size", 0);
  config.only("encoder_repetition_penalty", 1);
  config.only("guidance_scale", 1);
  for (const char* key : {"sequence_bias", "exponential_decay_length_penalty", "stop_strings", "watermarking_config"})
    config.only(key, nullptr);
  GenerationOptions options{.max_length = config.size("max_length", 20),
                            .min_length = config.size("min_length", 0, 0),
                            .end = token_list(config, "eos_token_id"),
                            .pad = token(config, "pad_token_id"),
                            .start = token(config, "decoder_start_token_id"),
                            .forced_first = token(config, "forced_bos_token_id"),
                            .forced_last = token(config, "forced_eos_token_id"),
                            .suppressed = token_list(config, "suppress_tokens"),
                            .suppressed_first = token_list(config, "begin_suppress_tokens"),
                            .repetition_penalty = config.number("repetition_penalty", 1),
                            .no_repeat = config.size("no_repeat_ngram_size", 0, 0)};
  if (options.start < 0) options.start = token(config, "bos_token_id");
  if (config.has("bad_words_ids")) {
    try {
      options.bad_words = config.json().at("bad_words_ids").get<std::vector<Row>>();
    } catch (const Json::exception&) {
      config.refuse("bad_words_ids", "a list of lists of tokens");
    }
    std::erase_if(options.bad_words, [](const Row& word) { return word.empty(); });
  }
  return options;
}

Tensor generate(const Model& model, const Named& inputs, const GenerationOptions& options) {
  const NoGrad quiet;
  const TextDecoder& decoder = model.decoder();
  const Tensor given_tokens = tokens_in(inputs, "input_ids");
  const int64_t B = given_tokens.size(0);
  check(!decoder.encoder || options.start >= 0, "generate: no decoder_start_token_id, expected one to begin with");
  std::vector<Row> texts =
      decoder.encoder ? std::vector<Row>(static_cast<size_t>(B), Row{options.start}) : rows_of(given_tokens, B, given_tokens.size(1));
  const int64_t began = std::ssize(texts[0]), pad = options.pad >= 0 || options.end.empty() ? options.pad : options.end[0];
  Writing writing = decoder.start(with_mask(inputs, given_tokens, options));
  std::vector<bool> ended(texts.size(), false);
  Tensor tokens = tensor_of(texts);
  for (int64_t length = began; length < options.max_length && !std::all_of(ended.begin(), ended.end(), [](bool x) { return x; });
       ++length) {
    const Tensor logits = decoder.step(writing, tokens);  // (B, V)
    const std::vector<float> flat = logits.to_vector<float>();
    std::vector<Scores> scores;
    for (int64_t b = 0; b < B; ++b) {
      scores.emplace_back(flat.begin() + b * logits.size(1), flat.begin() + (b + 1) * logits.size(1));
      apply_rules(scores.back(), texts[static_cast<size_t>(b)], began, options);
    }
    std::vector<Row> next;
    const Row chosen = options.choose(scores);
    for (size_t b = 0; b < texts.size(); ++b) {
      next.push_back({ended[b] ? pad : chosen[b]});
      texts[b].push_back(next.back()[0]);
      ended[b] = ended[b] || holds(options.end, chosen[b]);
    }
    tokens = tensor_of(next);
  }
  return tensor_of(texts);
}

}  // namespace heed
