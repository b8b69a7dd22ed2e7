// Text generation with a language model, token by token, with a key-value cache.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/models/model.h"
#include "heed/models/sample.h"

namespace HEED_API heed {

// When beam search stops for an input: when no running beam has a better score at its current length than the finished ones (no);
// when as many sequences are finished as there are beams (yes); when no beam can get better at any length (never).
enum class EarlyStopping { no, yes, never };

// As in generation_config.json. Tokens: -1 means none.
struct GenerationOptions {
  int64_t max_length = 0;       // of a sequence including the prompt; 0: use max_new_tokens
  int64_t max_new_tokens = 20;  // used without max_length
  int64_t min_length = 0, min_new_tokens = 0;
  std::vector<int64_t> end = {};                                // eos_token_id: any of them ends a sequence
  int64_t pad = -1;                                             // pads sequences that end before others
  int64_t start = -1;                                           // decoder_start_token_id: first token of an encoder-decoder's output
  int64_t forced_first = -1;                                    // forced_bos_token_id
  std::vector<int64_t> forced_last = {};                        // forced_eos_token_id: one of them is the last token
  std::vector<int64_t> suppressed = {}, suppressed_first = {};  // suppress_tokens, begin_suppress_tokens
  std::vector<std::vector<int64_t>> bad_words = {};             // bad_words_ids: sequences that are never generated
  float repetition_penalty = 1;
  int64_t no_repeat = 0;     // no_repeat_ngram_size: no n-gram of this size occurs twice
  bool renormalize = false;  // renormalize_logits: log-probabilities are normalized again after the rules

  bool sample = false;     // do_sample; false: greedy
  Sampling sampling = {};  // temperature, top-k, top-p, ...
  Chooser choose = {};     // replaces both

  int64_t beams = 1;                                 // num_beams: more than 1 selects beam search (beam.h)
  float length_penalty = 1;                          // scores of beams are divided by their length to this power
  EarlyStopping early_stopping = EarlyStopping::no;  // of beam search
  int64_t count = 1;                                 // num_return_sequences: outputs per input, with sampling or beams

  // Precision on GPUs of weights (unless they are int8), keys and values, without rules, beams and `choose`; everything else is f32.
  DType precision = DType::bf16;

  // Called with each new token of every sequence, -1 for finished ones. Not with beam search.
  std::function<void(std::span<const int64_t> tokens)> on_tokens = {};
};

// generation_config.json, or config.json if there is none, with those settings of its "decoder" that it does not have.
Json generation_settings(const Model& model);
// From these. Unsupported settings are errors.
GenerationOptions generation_options(const Model& model);
GenerationOptions generation_options(const Json& json, const std::string& source);

// inputs: of the model, input_ids (B, N) and for example attention_mask -> (B count, L) i64 including the prompt
Tensor generate(const Model& model, const TensorMap& inputs, const GenerationOptions& options);

}  // namespace heed
