#include "heed/models/cost.h"

#include <algorithm>
#include <iterator>

#include "heed/models/config.h"
#include "heed/models/cost_attention.h"
#include "heed/models/cost_rows.h"

namespace heed {
namespace {

constexpr int64_t kFloat = 4;  // bytes: heed computes in f32

int64_t product(std::initializer_list<int64_t> factors) {
  int64_t out = 1;
  for (int64_t factor : factors) out = checked_multiply(out, factor);
  return out;
}

using NameParts = std::initializer_list<const char*>;
constexpr NameParts kWordEmbeddings{"word_embeddings", "wte", "embed_tokens", "shared"};
constexpr NameParts kLookedUp{
    "word_embeddings",       "wte", "embed_tokens",    "shared",   "position_embeddings", "position_embeddings_2d",
    "token_type_embeddings", "wpe", "embed_positions", "positions"};
constexpr NameParts kOfPixels{"patch_embeddings", "embedder"};  // their input needs no gradient

class Counter {
 public:
  Counter(const Model& model, InputSize size) : model_(model), config_(model.config(), "config.json"), rows_(model, size), B_(size.batch) {}

  ModelCost count() {
    ModelCost out{.size = rows_.size()};
    for (const Parameter& parameter : model_.params().all()) {
      add(out.parts, parameter);
      if (parameter.options.learned) out.learned += parameter.tensor.count();
    }
    for (ModelPart& part : out.parts) cost(part);
    add_tied_head(out.parts);
    add_attention(out);
    for (const ModelPart& part : out.parts) out.total.add(part);
    return out;
  }

 private:
  void add(std::vector<ModelPart>& parts, const Parameter& parameter) const;
  void cost(ModelPart& part) const;
  void cost_product(ModelPart& part, int64_t rows, int64_t trained, const Shape& weight, bool input_gradient) const;
  void add_tied_head(std::vector<ModelPart>& parts) const;
  void add_attention(ModelCost& out) const;
  AttentionShape attention_at(const std::string& path, bool causal) const;

  const Model& model_;
  const Config config_;
  const CostRows rows_;
  const int64_t B_;
};

// Weight and bias form a module; other parameters are parts of their own.
void Counter::add(std::vector<ModelPart>& parts, const Parameter& parameter) const {
  std::string name = parameter.name;
  if (name.ends_with(".weight")) name = name.substr(0, name.size() - 7);
  if (name.ends_with(".bias") && !parts.empty() && parts.back().name + ".bias" == name) name = parts.back().name;
  if (parts.empty() || parts.back().name != name) parts.push_back({.name = name});
  ModelPart& part = parts.back();
  part.parameters.push_back(parameter);
  part.count += parameter.tensor.count();
  part.bytes += product({parameter.tensor.count(), static_cast<int64_t>(bytes_of(parameter.stored))});
}

// A product of `rows` rows per item, `trained` in training, where it is repeated for the gradient of the weight and, with
// input_gradient, for that of the input. weight: (O, I, ...)
void Counter::cost_product(ModelPart& part, int64_t rows, int64_t trained, const Shape& weight, bool input_gradient) const {
  const bool overlap = has_part(part.name, "convolution");  // windows share pixels, which are counted once
  const int64_t numbers = heed::count(weight), O = weight[0], times = input_gradient ? 3 : 2;
  const int64_t I = overlap ? weight[1] : O == 0 ? 0 : numbers / O;
  part.multiply_adds = product({B_, rows, numbers});
  part.training_multiply_adds = product({times, B_, trained, numbers});
  part.activation_bytes = product({kFloat, B_, rows, O});
  part.moved_bytes = kFloat * (product({B_, rows, I + O}) + numbers);
  part.training_moved_bytes = times * kFloat * (product({B_, trained, I + O}) + numbers);
}

void Counter::cost(ModelPart& part) const {
  const Parameter& weight = part.parameters.front();
  if (!weight.name.ends_with(".weight") || !weight.options.learned) return;  // others are kept for other programs only
  const Shape& shape = weight.tensor.shape();
  const int64_t rows = rows_.of(part.name), trained = rows_.in_training(part.name);
  if (has_part(part.name, "relative_content")) {  // a vector per distance, independent of the batch
    const int64_t distances = 2 * std::max(rows, int64_t{1}) - 1;
    cost_product(part, distances, distances, shape, false);
    for (int64_t* each : {&part.multiply_adds, &part.training_multiply_adds, &part.activation_bytes}) *each /= B_;
    return;
  }
  if (has_part(part.name, kLookedUp)) {
    if (!has_part(part.name, kWordEmbeddings)) return;
    part.activation_bytes = product({kFloat, B_, rows, shape.back()});
    part.moved_bytes = 2 * part.activation_bytes;
    part.training_moved_bytes = 2 * part.moved_bytes;
    return;
  }
  if (shape.rank() >= 2) return cost_product(part, rows, trained, shape, !has_part(part.name, kOfPixels));
  part.activation_bytes = product({kFloat, B_, rows, shape[0]});
  part.moved_bytes = 2 * part.activation_bytes;
  part.training_moved_bytes = product({6 * kFloat, B_, trained, shape[0]});
}

// The output projection of models that tie it to the word embeddings.
void Counter::add_tied_head(std::vector<ModelPart>& parts) const {
  const std::string& architecture = model_.architecture();
  const bool bert = architecture == "BertForMaskedLM" || architecture == "BertForPreTraining";
  if (!bert && architecture != "GPT2LMHeadModel" && architecture != "LlamaForCausalLM" && architecture != "MarianMTModel") return;
  const std::string name = bert ? "cls.predictions.decoder" : "lm_head";
  const ModelPart* words = nullptr;
  for (const ModelPart& part : parts) {
    if (part.name == name) return;
    if (has_part(part.name, kWordEmbeddings) && part.parameters[0].options.learned) words = &part;  // the last one is the decoder's
  }
  if (!words) return;
  ModelPart tied{.name = name + ".(tied)"};
  cost_product(tied, rows_.of("lm_head"), rows_.in_training("lm_head"), words->parameters[0].tensor.shape(), true);
  parts.push_back(std::move(tied));
}

// The numbers of queries and keys of an attention module.
AttentionShape Counter::attention_at(const std::string& path, bool causal) const {
  const InputSize& size = rows_.size();
  AttentionShape at{.grid = rows_.grid()};
  const bool cross = path.ends_with("encoder_attn"), pooling = has_part(path, "pooling"), target = path.starts_with("model.decoder.");
  at.self = !cross && !pooling;
  at.causal = causal || target;
  at.M = target && !cross ? size.target : size.tokens;
  at.N = pooling ? 1 : target ? size.target : size.tokens;
  return at;
}

void Counter::add_attention(ModelCost& out) const {
  const bool decoder = model_.architecture().starts_with("GPT2") || model_.architecture().starts_with("Llama");
  const bool causal = decoder || config_.flag("is_decoder", false);
  PairCounter pairs_of;
  std::vector<ModelPart> all;
  all.reserve(out.parts.size());
  for (size_t begin = 0, end = 0; begin < out.parts.size(); begin = end) {
    const std::string path = attention_path(out.parts[begin].name);
    end = begin + 1;
    if (path.empty()) {
      all.push_back(std::move(out.parts[begin]));
      continue;
    }
    AttentionShape at = attention_at(path, causal);
    at.width = out.parts[begin].parameters[0].tensor.shape().back();
    while (end < out.parts.size() && attention_path(out.parts[end].name) == path) ++end;
    for (size_t i = begin; i < end; ++i) at.add_projection(out.parts[i]);
    AttentionShape trained = at;
    trained.N = std::min(at.N, rows_.in_training(path + ".(attend)"));
    trained.drops = config_.probability("attention_probs_dropout_prob", 0) > 0;
    const auto moved = [&](const AttentionShape& x) {
      return product({kFloat, B_, product({x.N, x.query + x.output}) + product({x.M, x.key + (x.value > 0 ? x.value : x.width)})});
    };
    const AttentionWork training = attention_work(trained, config_, path, pairs_of);
    const ModelPart attend{.name = path + ".(attend)",
                           .multiply_adds = product({B_, attention_work(at, config_, path, pairs_of).forward}),
                           .activation_bytes = product({kFloat, B_, at.N, at.output}),
                           .moved_bytes = moved(at),
                           .training_multiply_adds = product({B_, training.forward + training.backward}),
                           .training_moved_bytes = 3 * moved(trained)};
    std::move(out.parts.begin() + static_cast<int64_t>(begin), out.parts.begin() + static_cast<int64_t>(end), std::back_inserter(all));
    all.push_back(attend);
    if (!at.self && path.ends_with("encoder_attn")) out.memory_bytes += kFloat * at.cached();
    if (at.self && (path.starts_with("model.decoder.") || decoder)) out.cache_bytes += kFloat * at.cached();
  }
  out.parts = std::move(all);
}

}  // namespace

void ModelPart::add(const ModelPart& other) {
  using Number = int64_t ModelPart::*;
  for (Number number : {&ModelPart::count, &ModelPart::bytes, &ModelPart::multiply_adds, &ModelPart::activation_bytes,
                        &ModelPart::moved_bytes, &ModelPart::training_multiply_adds, &ModelPart::training_moved_bytes})
    check(!__builtin_add_overflow(this->*number, other.*number, &(this->*number)), "cost: the model is too large, the counts overflow");
}

InputSize resolve_input_size(const Model& model, InputSize size) { return CostRows(model, size).size(); }

ModelCost cost_of(const Model& model, InputSize size) {
  return counted([&] { return Counter(model, size).count(); });
}

}  // namespace heed
