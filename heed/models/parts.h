// Shared by the architectures: inputs by name, masks, losses, optional outputs.
#pragma once

#include <optional>

#include "heed/attention/tap.h"
#include "heed/models/config.h"
#include "heed/models/model.h"
#include "heed/models/variant.h"
#include "heed/nn/encoder.h"

namespace heed {

Tensor optional_input(const TensorMap& inputs, const std::string& name);  // undefined if absent
Tensor required_input(const TensorMap& inputs, const std::string& name);  // an error if absent
// input_ids or decoder_input_ids. -> (B, N) i64
Tensor token_input(const TensorMap& inputs, const std::string& name);
// The positions of tokens, (B, N) i64: position_ids, which may be (1, N), or with options.sequences the place in each sequence; undefined:
// 0, 1, 2, ...
Tensor position_input(const TensorMap& inputs, const ForwardOptions& options);

// From states to logits of tokens: the word embeddings if they are tied, else lm_head.
Linear language_head(const Scope& scope, const Embedding& word_embeddings, bool shared);

// Terms for an attention mask. mask: (B, M) of 1 and 0, or undefined; N: queries. In `transformers` a query that may see no key
// attends to all keys equally; these terms do the same.
std::vector<Term> mask_terms(const Tensor& mask, int64_t B, int64_t N, int64_t M, bool causal, Device device);
// The rows of a mask or of tokens (B, N) in host memory; empty if x is undefined.
std::vector<std::vector<int64_t>> rows_of(const Tensor& x, int64_t B, int64_t N);

// Sentence vectors, pooled over the tokens that the mask (B, N) leaves visible. x: (B, N, D) -> (B, D). With options.sequences, x is
// (1, T, D) and the result has a row for every sequence.
Tensor pool_text(const Pool& pool, const Tensor& x, const Tensor& mask, const ForwardOptions& options);
// The final norm of pre-norm layers; undefined for post-norm layers.
Norm final_norm(const Scope& scope, const LayerOptions& options);
inline Tensor apply_norm(const Norm& norm, const Tensor& x) { return norm.weight.defined() ? norm(x) : x; }

// Collects the requested outputs while layers run.
class OutputCollector {
 public:
  explicit OutputCollector(const ForwardOptions& options) : options_(options) {
    if (options.attentions) tap_.emplace();
  }
  void state(const Tensor& x) {
    if (options_.hidden_states) states_.push_back(x);
  }
  void last_state(const Tensor& x) {  // replaces the last one
    if (options_.hidden_states) states_.back() = x;
  }
  // Adds prefix + "hidden_states.0", prefix + "attentions.0", ... With `cross`, every second attention is one of "cross_attentions".
  void add_outputs(TensorMap& out, int64_t layers, const std::string& prefix = "", bool cross = false) const;

 private:
  ForwardOptions options_;
  Tensors states_;
  std::optional<AttentionTap> tap_;
};

inline Tensor in_precision(const Tensor& x, DType precision) { return x.dtype() == precision ? x : cast(x, precision); }
// States as a head over many classes reads them: on GPUs in the precision of the layers, on the CPU in f32.
inline Tensor head_states(const Tensor& x, const ForwardOptions& options) {
  return x.device() == kCpu ? x : in_precision(x, options.precision);
}

// Runs the layers; the collector gets every state. query_rows: (B, n) i64, rows of (B N) that the last layer computes; undefined: all
Tensor run_layers(const std::vector<EncoderLayer>& layers, Tensor x, const AttentionOptions& attention, const ForwardOptions& options,
                  OutputCollector& collector, const Tensor& positions = {}, const Tensor& query_rows = {});
// The first token of every item. -> (B, 1), rows of (B N)
Tensor first_rows(int64_t B, int64_t N);
// Whether the last layer may skip tokens that no head reads.
bool can_skip_tokens(const std::vector<EncoderLayer>& layers, const AttentionOptions& attention, const ForwardOptions& options);

// Masks and positions of the next n tokens. Extends state.mask; call it before the tokens are added to the cache.
struct NextTokens {
  AttentionOptions options = {};  // without the causal mask
  Tensor positions = {};          // (B, n) i64; undefined: consecutive
};
NextTokens next_tokens(DecodeState& state, int64_t B, int64_t n, Device device);

// By problem_type of config.json: cross-entropy, mean squared error, or binary cross-entropy per label. logits: (B, labels)
Tensor classification_loss(const Tensor& logits, const Tensor& labels, const Config& config, const ForwardOptions& options);
Tensor token_loss(const Tensor& logits, const Tensor& labels, const ForwardOptions& options);  // cross-entropy; labels of -100 are ignored
// Adds the outputs `name`, the logits, and "loss" if there are labels. x: (B, N, D), labels: (B, N), head: (V, D').
// transform: applied to states before the head. With loss_only, the head computes only tokens that have a label. The host
// must read the labels to find these, so labels on a GPU compute all tokens, unless `places` lists them. places: (K), rows of (B N, D) for
// labels (K); undefined: labels are (B, N)
void add_token_logits(TensorMap& out, const std::string& name, const Linear& head, const Tensor& x, const Tensor& labels,
                      const ForwardOptions& options, const std::function<Tensor(const Tensor&)>& transform = {}, const Tensor& places = {});
// Labels shifted by one token, for next-token prediction; the last is -100. labels: (B, N)
Tensor shift_labels(const Tensor& labels);

// Whether a layer has a sliding window: its entry in layer_types of config.json is "sliding_attention". Without that key: fallback
bool has_window(const Config& config, int64_t layer, bool fallback);

// All parameters are normal with the deviation config.json has under `key`.
Initializers initializer_from(const Config& config, std::string_view key, bool truncated);

// Whether the parameter `other` is tied to `name`: unless tie_word_embeddings is false or the file has two different tensors.
bool tied(const Scope& scope, const Config& config, bool fallback, const std::string& other, const std::string& name);

}  // namespace heed
