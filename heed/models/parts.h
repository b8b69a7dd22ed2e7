// What the architectures share: inputs by name, masks, losses, and what a caller asked to see.
#pragma once

#include <optional>

#include "heed/attention/tap.h"
#include "heed/models/config.h"
#include "heed/models/model.h"
#include "heed/models/variant.h"
#include "heed/nn/encoder.h"

namespace heed {

Tensor given(const Named& inputs, const std::string& name);  // undefined where there is none
// From states to words: the words' own vectors where they are shared, else lm_head.
Linear language_head(const Scope& scope, const Embedding& words, bool shared);

Tensor needed(const Named& inputs, const std::string& name);  // an error where there is none
// input_ids and the like. -> (B, N) i64
Tensor tokens_in(const Named& inputs, const std::string& name);

// Which keys are seen. mask: (B, M) of 1 and 0, or undefined. `transformers` lets a query that may see nothing see all keys
// alike; so do these terms, where a mask leaves such queries, N of them that see no later key when causal.
std::vector<Term> mask_terms(const Tensor& mask, int64_t B, int64_t N, int64_t M, bool causal);
// The rows of a mask or of tokens (B, N) in memory; empty where there is no tensor.
std::vector<std::vector<int64_t>> rows_of(const Tensor& x, int64_t B, int64_t N);

// Sentences as vectors, of the tokens that the mask (B, N) lets be seen. x: (B, N, D) -> (B, D)
Tensor pool_text(const Pool& pool, const Tensor& x, const Tensor& mask, Mode mode);
// The norm that ends layers with norms before their branches; undefined where norms stand behind them.
Norm last_norm(const Scope& scope, const LayerOptions& options);
inline Tensor normed(const Norm& norm, const Tensor& x) { return norm.weight.defined() ? norm(x) : x; }

// Collects the outputs that were asked for while layers run.
class Witness {
 public:
  explicit Witness(const Ask& ask) : ask_(ask) {
    if (ask.attentions) tap_.emplace();
  }
  void state(const Tensor& x) {
    if (ask_.hidden_states) states_.push_back(x);
  }
  void last_state(const Tensor& x) {  // in place of the one before
    if (ask_.hidden_states) states_.back() = x;
  }
  // prefix + "hidden_states.0", prefix + "attentions.0", ...: one map a layer. With `cross`, every second map is one of
  // "cross_attentions".
  void tell(Named& out, int64_t layers, const std::string& prefix = "", bool cross = false) const;

 private:
  Ask ask_;
  Tensors states_;
  std::optional<AttentionTap> tap_;
};

// The layers in turn; the witness sees every state, and the last one. wanted: (B, n) i64, the tokens that the last layer is to give,
// or undefined: all
Tensor run_layers(const std::vector<EncoderLayer>& layers, Tensor x, const AttentionOptions& options, const Ask& ask, Witness& witness,
                  const Tensor& positions = {}, const Tensor& wanted = {});
// Whether the last layer may leave out tokens that no head reads.
bool may_leave_out(const std::vector<EncoderLayer>& layers, const AttentionOptions& options, const Ask& ask);

// What n more tokens of texts see and where they stand, told by which tokens are seen. To be asked before they are appended.
struct NextTokens {
  AttentionOptions options = {};  // besides the causal mask
  Tensor positions = {};          // (B, n) i64; undefined: behind those before
};
NextTokens next_tokens(Writing& texts, int64_t B, int64_t n);

// By config.json's problem_type: cross-entropy, or the mean square, or a yes or no for every label. logits: (B, labels)
Tensor classification_loss(const Tensor& logits, const Tensor& labels, const Config& config, const Ask& ask);
Tensor token_loss(const Tensor& logits, const Tensor& labels, const Ask& ask);  // cross-entropy; labels of -100 do not count
// Words of tokens, and their loss where there are labels: as the outputs `name` and "loss". x: (B, N, D), labels: (B, N), words: (V, D').
// before: what a head does to states first, or nothing
void tell_words(Named& out, const std::string& name, const Linear& words, const Tensor& x, const Tensor& labels, const Ask& ask,
                const std::function<Tensor(const Tensor&)>& before = {});
// The labels one place earlier, for a head that tells what follows; the last token has none. labels: (B, N)
Tensor labels_of_next(const Tensor& labels);

// All parameters begin as normal numbers of this deviation. key: config.json's name for it
Initialisation beginning(const Config& config, std::string_view key, bool truncated);

// Whether a checkpoint's `other` is `name`: unless config.json says no, or the file holds two different ones.
bool tied(const Scope& scope, const Config& config, bool otherwise, const std::string& other, const std::string& name);

}  // namespace heed
