// generation_config.json as GenerationOptions, with the defaults of `transformers`.
#include <algorithm>

#include "heed/models/config.h"
#include "heed/models/generate.h"

namespace heed {
namespace {

using Row = std::vector<int64_t>;

Row token_list(const Config& config, std::string_view key) {
  if (!config.has(key)) return {};
  const Json& found = config.at(key).json();
  if (found.is_number_integer()) return {config.size(key, 0, 0)};
  const bool whole = found.is_array() && std::all_of(found.begin(), found.end(), [](const Json& x) { return x.is_number_integer(); });
  if (!whole) config.refuse(key, "a token or a list of tokens");
  return found.get<Row>();
}

int64_t token(const Config& config, std::string_view key) { return config.size(key, -1, -1); }  // -1, also in files: none

Row forced_tokens(const Config& config, std::string_view key) {
  return config.has(key) && config.at(key).json() == -1 ? Row() : token_list(config, key);
}

std::vector<Row> bad_words(const Config& config) {
  std::vector<Row> out;
  if (!config.has("bad_words_ids")) return out;
  try {
    out = config.json().at("bad_words_ids").get<std::vector<Row>>();
  } catch (const Json::exception&) {
    config.refuse("bad_words_ids", "a list of lists of tokens");
  }
  std::erase_if(out, [](const Row& word) { return word.empty(); });
  return out;
}

constexpr int64_t kMaxSequences = 1024;  // generated at the same time for each input

int64_t at_most(const Config& config, const char* key, int64_t most) {
  const int64_t value = config.size(key, 1);
  if (value > most) config.refuse(key, "at most " + std::to_string(most));
  return value;
}

float between(const Config& config, std::string_view key, float fallback) {
  const float value = config.number(key, fallback);
  if (!(value >= 0 && value <= 1)) config.refuse(key, "a number from 0 to 1");
  return value;
}

Sampling sampling(const Config& config) {
  config.only("typical_p", 1);
  config.only("top_h", nullptr);
  for (const char* key : {"epsilon_cutoff", "eta_cutoff"}) config.only(key, 0);
  const Sampling out{.temperature = config.number("temperature", 1),
                     .top_k = config.size("top_k", 50, 0),
                     .top_p = between(config, "top_p", 1),
                     .min_p = between(config, "min_p", 0)};
  if (!(out.temperature > 0)) config.refuse("temperature", "a number above 0");
  return out;
}

EarlyStopping early_stopping(const Config& config) {
  if (config.has("early_stopping") && config.json().at("early_stopping") == "never") return EarlyStopping::never;
  return config.flag("early_stopping", false) ? EarlyStopping::yes : EarlyStopping::no;
}

}  // namespace

GenerationOptions generation_options(const Json& json, const std::string& source) {
  const Config config(json, source);
  for (const char* key : {"encoder_repetition_penalty", "guidance_scale", "num_beam_groups"}) config.only(key, 1);
  for (const char* key : {"encoder_no_repeat_ngram_size", "diversity_penalty", "penalty_alpha"}) config.only(key, 0);
  for (const char* key : {"remove_invalid_values", "token_healing"}) config.only(key, false);
  for (const char* key : {"sequence_bias", "exponential_decay_length_penalty", "stop_strings", "watermarking_config", "constraints",
                          "force_words_ids", "dola_layers", "max_time"})
    config.only(key, nullptr);
  const bool sample = config.flag("do_sample", false);
  GenerationOptions options{.max_length = config.has("max_new_tokens") ? 0 : config.size("max_length", 0),
                            .max_new_tokens = config.size("max_new_tokens", 20),
                            .min_length = config.size("min_length", 0, 0),
                            .min_new_tokens = config.size("min_new_tokens", 0, 0),
                            .end = token_list(config, "eos_token_id"),
                            .pad = token(config, "pad_token_id"),
                            .start = token(config, "decoder_start_token_id"),
                            .forced_first = token(config, "forced_bos_token_id"),
                            .forced_last = forced_tokens(config, "forced_eos_token_id"),
                            .suppressed = token_list(config, "suppress_tokens"),
                            .suppressed_first = token_list(config, "begin_suppress_tokens"),
                            .bad_words = bad_words(config),
                            .repetition_penalty = config.number("repetition_penalty", 1),
                            .no_repeat = config.size("no_repeat_ngram_size", 0, 0),
                            .renormalize = config.flag("renormalize_logits", false),
                            .sample = sample,
                            .sampling = sample ? sampling(config) : Sampling{},
                            .beams = at_most(config, "num_beams", kMaxSequences),
                            .length_penalty = config.number("length_penalty", 1),
                            .early_stopping = early_stopping(config),
                            .count = at_most(config, "num_return_sequences", kMaxSequences)};
  if (options.start < 0) options.start = token(config, "bos_token_id");
  if (!(options.repetition_penalty > 0)) config.refuse("repetition_penalty", "a number above 0");
  return options;
}

Json generation_settings(const Model& model) {
  if (!model.generation().is_null()) return model.generation();
  Json out = Config(model.config(), "config.json").below("decoder").json();
  for (const auto& [key, value] : model.config().items())
    if (!value.is_null()) out[key] = value;
  return out;
}

GenerationOptions generation_options(const Model& model) {
  return generation_options(generation_settings(model), model.generation().is_null() ? "config.json" : "generation_config.json");
}

}  // namespace heed
