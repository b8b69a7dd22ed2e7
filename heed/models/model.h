// Models that are read from folders as Hugging Face's `transformers` writes them, and give the same numbers. config.json is
// the config, the names of parameters, inputs and outputs are theirs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "heed/attention/cache.h"
#include "heed/io/json.h"
#include "heed/nn/mode.h"
#include "heed/nn/params.h"

namespace heed {

using Named = std::map<std::string, Tensor>;

// What a call is to give besides its result: "hidden_states.0", ... and "attentions.0", ... Whether it trains, and on what.
struct Ask {
  bool hidden_states = false, attentions = false;
  Mode mode = {};
  bool loss_only = false;     // what does not reach "loss" is not computed: words without labels, nor states that no head reads
  float label_smoothing = 0;  // of "loss", where it is a cross-entropy
};

// Texts that are being written, B of them, token by token.
struct Writing {
  std::vector<KeyValueCache> past = {};                // of every layer
  std::vector<std::pair<Tensor, Tensor>> memory = {};  // of every layer: keys and values of the encoder's output
  Tensor memory_mask = {};                             // (B, M) of 1 and 0: which of those are seen; undefined: all
  std::vector<std::vector<int64_t>> seen = {};         // B rows of 1 and 0: which tokens so far are seen; empty: all

  int64_t length() const { return past.empty() ? 0 : past[0].length(); }
  // Text i becomes what text items[i] was: beams that go on, fork or end.
  void reorder(std::span<const int64_t> items);
  void reorder_past(std::span<const int64_t> items);  // the same where only what was written so far differs
};

// How a language model writes: texts begin with what their inputs say, every step takes tokens and tells what may follow.
struct TextDecoder {
  std::function<Writing(const Named& inputs)> start = {};
  std::function<Tensor(Writing& texts, const Tensor& tokens)> step = {};  // (B, n) i64 -> logits (B, V) after the last one
  bool encoder = false;  // tokens begin with decoder_start_token_id; without an encoder they begin with input_ids
};

// What an architecture makes of a config.
struct Network {
  std::function<Named(const Named& inputs, const Ask& ask)> run = {};
  std::vector<std::string> inputs = {};  // the names it knows
  TextDecoder decoder = {};              // of language models
};

struct ModelOptions {
  LoadOptions names = {};                // what a checkpoint may lack or hold too much
  Weights weights = Weights::trainable;  // packed: for inference alone, quicker and without gradients; int8: bytes, a quarter of the memory
  std::string architecture = {};         // in place of what config.json says
  Json config = {};                      // in place of config.json, of load()
  uint64_t seed = 1;                     // of what is not in the checkpoint
};

class Model {
 public:
  Model(Network network, std::unique_ptr<Params> params, std::string architecture, Json config, Json generation);

  Named operator()(const Named& inputs, const Ask& ask = {}) const;
  const TextDecoder& decoder() const;  // an error where the model writes no text

  const std::string& architecture() const { return architecture_; }
  const std::vector<std::string>& inputs() const { return network_.inputs; }  // the names it knows
  const Json& config() const { return config_; }
  const Json& generation() const { return generation_; }  // generation_config.json, or null
  const Params& params() const { return *params_; }

 private:
  Network network_;
  std::unique_ptr<Params> params_;
  std::string architecture_;
  Json config_, generation_;
};

// From a folder with config.json and model.safetensors, or shards with their index. Every parameter must be there and every
// tensor of the files must be used, unless the options allow otherwise.
Model load(const Path& folder, const ModelOptions& options = {});
// With parameters as they begin.
Model make_model(const Json& config, const ModelOptions& options = {});

struct SaveOptions {
  DType dtype = DType::f32;  // or bf16, f16
  int64_t shard_bytes = 0;   // the most that one file holds; 0: all in model.safetensors
};
// config.json, generation_config.json where there was one, and the parameters, for heed and for transformers. Each file is
// written whole or not at all, config.json last.
void save(const Model& model, const Path& folder, const SaveOptions& options = {});

}  // namespace heed
