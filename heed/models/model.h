// Models read from checkpoint folders of Hugging Face `transformers`, with the same outputs. Config, parameter names, input names
// and output names are those of `transformers`.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "heed/attention/cache.h"
#include "heed/core/api.h"
#include "heed/io/json.h"
#include "heed/nn/mode.h"
#include "heed/nn/params.h"

namespace HEED_API heed {

struct Architecture;  // models/architecture.h
struct Family;

// Inputs or outputs by name: "input_ids", "pixel_values", "logits", ...
using TensorMap = std::map<std::string, Tensor>;

// Options of one call of a model.
struct ForwardOptions {
  bool hidden_states = false, attentions = false;  // additional outputs "hidden_states.0", ... and "attentions.0", ...
  Mode mode = {};                                  // training or evaluation
  DType precision = DType::f32;                    // of activations inside the layers: f32 or bf16; parameters and sums are f32
  bool loss_only = false;                          // skips what "loss" does not need: logits without label, states that no head reads
  float label_smoothing = 0;                       // of "loss" if it is a cross-entropy
  // Not empty: inputs are (1, T), the concatenated tokens of sequences of these lengths, without padding. Outputs are (1, T, ...) for
  // tokens and (sequences, ...) for sequences. Only for models with Model::takes_sequences().
  std::vector<int64_t> sequences = {};
};

// The state of B sequences being generated.
struct DecodeState {
  std::vector<KeyValueCache> past = {};                // of every layer
  std::vector<std::pair<Tensor, Tensor>> memory = {};  // of every layer: keys and values of the encoder's output
  Tensor memory_mask = {};                             // (B, M) of 1 and 0, attention mask of the memory; undefined: all 1
  std::vector<std::vector<int64_t>> mask = {};         // B rows of 1 and 0, attention mask of the tokens so far; empty: all 1

  int64_t length() const { return past.empty() ? 0 : past[0].length(); }  // tokens so far
  // Sequence i becomes a copy of sequence items[i], for beam search.
  void reorder(std::span<const int64_t> items);
  void reorder_past(std::span<const int64_t> items);  // the cache only, if memory and masks are equal
};

// The next tokens of a sequence that is generated together with others.
struct SequenceStep {
  DecodeState* state;           // of one sequence, without a mask
  std::vector<int64_t> tokens;  // one or more
};

class TokenSteps;          // steps of a language model that stay on a GPU: models/token_steps.h
struct TokenStepsOptions;  // their options

// The functions of a language model that generate text.
struct TextDecoder {
  std::function<DecodeState(const TensorMap& inputs)> start = {};
  std::function<Tensor(DecodeState& state, const Tensor& tokens)> step = {};  // (B, n) i64 -> logits (B, V) of the next token
  // Steps of different sequences of any lengths, which share the products of the linear layers -> logits (sequences, V) of their next
  // tokens. With packed weights those of a sequence do not depend on the others. Decoders without an encoder only.
  std::function<Tensor(std::span<const SequenceStep> steps)> step_together = {};
  // Decoding that stays on a GPU. logits: (B, V), of the token after `state` -> null: this model, device or state is not supported
  std::function<std::shared_ptr<TokenSteps>(const DecodeState& state, const Tensor& logits, const TokenStepsOptions& options)> on_device =
      {};
  bool encoder = false;  // sequences start with decoder_start_token_id; without an encoder, with input_ids
};

// A network built by an architecture from a config.
struct Network {
  std::function<TensorMap(const TensorMap& inputs, const ForwardOptions& options)> run = {};
  std::vector<std::string> inputs = {};  // accepted names
  TextDecoder decoder = {};              // of language models
  bool sequences = false;                // supports ForwardOptions::sequences
};

// How a model is made or loaded.
struct ModelOptions {
  LoadOptions names = {};                // names that may be missing or unused
  Weights weights = Weights::trainable;  // packed, int8: for inference, faster, without gradients; int8 takes a quarter of the memory
  std::string architecture = {};         // replaces the one of config.json
  Json config = {};                      // replaces config.json in load()
  bool new_head = false;                 // parameters of the head may be missing or of another shape: they are initialized
  uint64_t seed = 1;                     // of parameters that are not in the checkpoint
};

// A network with its parameters and its config. model({{"input_ids", tokens}})["logits"] runs it.
class Model {
 public:
  // Programs call load() or make_model().
  Model(Network network, std::unique_ptr<Params> params, const Architecture& architecture, Json config, Json generation);

  // Runs the network. Names and shapes of inputs and outputs are those of `transformers`: docs/models.md.
  TensorMap operator()(const TensorMap& inputs, const ForwardOptions& options = {}) const;
  bool generates() const { return static_cast<bool>(network_.decoder.step); }  // is a language model
  const TextDecoder& decoder() const;                                          // an error if it is not
  bool takes_sequences() const { return network_.sequences; }                  // ForwardOptions::sequences

  const std::string& architecture() const;                                    // "ViTForImageClassification", ... for display
  const Architecture& traits() const { return *architecture_; }               // its properties, see models/architecture.h
  const Family& family() const;                                               // the traits of its model type
  const std::vector<std::string>& inputs() const { return network_.inputs; }  // accepted names
  // Whether the model has an input of that name.
  bool takes(std::string_view input) const { return std::find(inputs().begin(), inputs().end(), input) != inputs().end(); }
  // config.json.
  const Json& config() const { return config_; }
  const Json& generation() const { return generation_; }  // generation_config.json, or null
  // The parameters, and where they are.
  const Params& params() const { return *params_; }
  Device device() const { return params_->device(); }

 private:
  Network network_;
  std::unique_ptr<Params> params_;
  const Architecture* architecture_;  // in architectures()
  Json config_, generation_;
};

// From a folder with config.json and model.safetensors, or shards and their index. Every parameter must be in the files, unless the options
// allow otherwise. Tensors that the model does not use, such as those of another head, are listed by names.warn, by default on standard
// error. A config.json without "architectures" gets the one of its "model_type" that fits the files best.
Model load(const Path& folder, const ModelOptions& options = {});
// With initialized parameters.
Model make_model(const Json& config, const ModelOptions& options = {});

// The same model with values from its files, or initialized ones: for a dry run, or with other weights.
Model rebuild(const Model& model, Weights weights);

// How a model is written.
struct SaveOptions {
  DType dtype = DType::f32;  // or bf16, f16
  int64_t shard_bytes = 0;   // maximum size of a file; 0: one model.safetensors
};
// Writes config.json, generation_config.json if the model has one, and the parameters, readable by heed and transformers. Each
// file is written atomically, config.json last.
void save(const Model& model, const Path& folder, const SaveOptions& options = {});

}  // namespace heed
