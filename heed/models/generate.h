// Writing text with a language model, token by token, with the keys and values of earlier tokens kept.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/models/model.h"
#include "heed/models/sample.h"

namespace heed {

// When the search with beams ends for a text: once no beam seems able to get better than what has ended, as its score stands
// now (no); once as many have ended as there are beams (yes); once none can get better whatever its length will be (never).
enum class EarlyStopping { no, yes, never };

// As in generation_config.json. -1: none
struct GenerationOptions {
  int64_t max_length = 0;       // of a text with all that it begins with; 0: max_new_tokens more
  int64_t max_new_tokens = 20;  // where there is no max_length
  int64_t min_length = 0, min_new_tokens = 0;
  std::vector<int64_t> end = {};                                // eos_token_id: any of them ends a text
  int64_t pad = -1;                                             // fills texts that ended before others
  int64_t start = -1;                                           // decoder_start_token_id: what the texts of an encoder-decoder begin with
  int64_t forced_first = -1, forced_last = -1;                  // forced_bos_token_id, forced_eos_token_id
  std::vector<int64_t> suppressed = {}, suppressed_first = {};  // suppress_tokens, begin_suppress_tokens
  std::vector<std::vector<int64_t>> bad_words = {};             // bad_words_ids: the last token of each never follows the others
  float repetition_penalty = 1;
  int64_t no_repeat = 0;     // no_repeat_ngram_size: no row of so many tokens comes twice
  bool renormalize = false;  // renormalize_logits: probabilities sum to 1 behind the rules

  bool sample = false;  // do_sample: by chance; otherwise the likeliest
  Sampling sampling = {};
  Chooser choose = {};  // in place of both

  int64_t beams = 1;         // num_beams: of several, the search with beams (beam.h)
  float length_penalty = 1;  // scores of whole texts are divided by their length to this power
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t count = 1;  // num_return_sequences: how many texts for each that is given, by chance or by beams

  // Told every token of every text as soon as it is chosen, -1 for texts that ended before. Not while beams search.
  std::function<void(std::span<const int64_t> tokens)> told = {};
};

// From generation_config.json, or else from config.json. Rules that heed does not know are refused by name.
GenerationOptions generation_options(const Model& model);
GenerationOptions generation_options(const Json& json, const std::string& source);

// inputs: what the model takes, input_ids (B, N) and for example attention_mask -> (B count, L) i64 with all that texts begin with
Tensor generate(const Model& model, const Named& inputs, const GenerationOptions& options);

}  // namespace heed
