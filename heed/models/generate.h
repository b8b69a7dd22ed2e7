// Writing text with a language model, token by token, with the keys and values of earlier tokens kept.
#pragma once

#include <functional>
#include <vector>

#include "heed/models/model.h"

namespace heed {

// Which token comes next, for every text. scores: B rows of V numbers, -infinity where a rule forbids a token.
using Chooser = std::function<std::vector<int64_t>(const std::vector<std::vector<float>>& scores)>;

std::vector<int64_t> choose_best(const std::vector<std::vector<float>>& scores);  // the first of equal ones

// As in generation_config.json. -1: none
struct GenerationOptions {
  int64_t max_length = 20;  // of a text with all that it begins with
  int64_t min_length = 0;
  std::vector<int64_t> end = {};                                // eos_token_id: any of them ends a text
  int64_t pad = -1;                                             // fills texts that ended before others
  int64_t start = -1;                                           // decoder_start_token_id: what the texts of an encoder-decoder begin with
  int64_t forced_first = -1, forced_last = -1;                  // forced_bos_token_id, forced_eos_token_id
  std::vector<int64_t> suppressed = {}, suppressed_first = {};  // suppress_tokens, begin_suppress_tokens
  std::vector<std::vector<int64_t>> bad_words = {};             // bad_words_ids: the last token of each never follows the others
  float repetition_penalty = 1;
  int64_t no_repeat = 0;  // no_repeat_ngram_size: no row of so many tokens comes twice
  Chooser choose = choose_best;
};

// From generation_config.json, or else from config.json.
GenerationOptions generation_options(const Model& model);

// inputs: what the model takes, input_ids (B, N) and for example attention_mask -> (B, L) i64 with all that texts begin with
Tensor generate(const Model& model, const Named& inputs, const GenerationOptions& options);

}  // namespace heed
