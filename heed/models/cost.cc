#include "heed/models/cost.h"

#include <algorithm>
#include <array>

#include "heed/models/config.h"
#include "heed/models/cost_attention.h"
#include "heed/models/cost_convolution.h"

namespace heed {
namespace {

constexpr int64_t kFloat = 4;  // bytes: heed computes in f32

int64_t product(std::initializer_list<int64_t> factors) {
  int64_t out = 1;
  for (int64_t factor : factors) out = checked_multiply(out, factor);
  return out;
}

using Words = std::initializer_list<const char*>;
constexpr Words kWords{"word_embeddings", "wte", "embed_tokens", "shared"};
constexpr Words kLookedUp{"word_embeddings",       "wte", "embed_tokens",    "shared",   "position_embeddings", "position_embeddings_2d",
                          "token_type_embeddings", "wpe", "embed_positions", "positions"};
constexpr Words kOfItems{"pooler", "pre_classifier", "seq_relationship", "cls_classifier", "distillation_classifier"};

// Whether one of the words stands between the dots of a name.
bool has(const std::string& name, Words words) {
  const std::vector<std::string> parts = name_words(name);
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) { return is_one_of(part, words); });
}
bool has(const std::string& name, const char* word) { return has(name, {word}); }

class Counter {
 public:
  Counter(const Model& model, InputSize size) : model_(model), config_(model.config(), "config.json"), size_(size) { settle_size(); }

  ModelCost count() {
    ModelCost out{.size = size_};
    for (const Parameter& parameter : model_.params().all()) add(out.parts, parameter);
    for (ModelPart& part : out.parts) cost(part);
    add_tied_head(out.parts);
    add_attention(out);
    for (const ModelPart& part : out.parts) {
      out.total.count += part.count;
      out.total.bytes += part.bytes;
      out.total.multiply_adds += part.multiply_adds;
      out.total.activation_bytes += part.activation_bytes;
    }
    return out;
  }

 private:
  void settle_size();
  void add(std::vector<ModelPart>& parts, const Parameter& parameter) const;
  void cost(ModelPart& part) const;
  void add_tied_head(std::vector<ModelPart>& parts) const;
  void add_attention(ModelCost& out) const;
  int64_t rows(const std::string& name) const;

  const Model& model_;
  const Config config_;
  InputSize size_;
  InputKind kind_ = InputKind::text;
  int64_t patches_ = 0;
  std::array<int64_t, 2> grid_{};
};

void Counter::settle_size() {
  kind_ = input_kind(model_);
  check<UsageError>(size_.batch >= 1 && size_.tokens >= 0 && size_.target >= 0, "inspect: a batch of ", size_.batch, " and ", size_.tokens,
                    " tokens, expected 1 or more");
  if (kind_ == InputKind::picture) {
    std::vector<int64_t> image = config_.sizes("image_size", {224}), patch = config_.sizes("patch_size", {16});
    image.resize(2, image[0]);
    patch.resize(2, patch[0]);
    grid_ = {image[0] / patch[0], image[1] / patch[1]};
    patches_ = product({grid_[0], grid_[1]});
    int64_t first = 0;
    for (const Parameter& parameter : model_.params().all())
      first += parameter.name.ends_with("cls_token") || parameter.name.ends_with("distillation_token");
    check<UsageError>(size_.tokens == 0 || size_.tokens == patches_ + first, "inspect: ", size_.tokens,
                      " tokens, expected none: the size of pictures is the model's, ", image[0], " x ", image[1]);
    size_.tokens = patches_ + first;
    return;
  }
  const int64_t places = most_tokens(model_);
  if (size_.tokens == 0) size_.tokens = std::min<int64_t>(128, places);
  if (kind_ == InputKind::translation && size_.target == 0) size_.target = size_.tokens;
  const int64_t longest = std::max(size_.tokens, size_.target);
  check<UsageError>(longest <= places, "inspect: ", longest, " tokens, the model has ", places, " positions");
}

// Weight and bias make a module; what has neither stands alone.
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

// How many vectors of an item a module sees.
int64_t Counter::rows(const std::string& name) const {
  if (model_.architecture().starts_with("ResNet")) {
    const auto [down, along] = convolution_places(config_, name);
    return product({down, along});
  }
  const bool keys = has(name, {"key", "value", "k_proj", "v_proj"});
  if (has(name, "patch_embeddings")) return patches_;
  if (has(name, kOfItems) || (has(name, "pooling") && !keys)) return 1;
  if (has(name, "classifier") && model_.architecture().find("TokenClassification") == std::string::npos) return 1;
  if (kind_ != InputKind::translation) return size_.tokens;
  if (name == "model.shared") return size_.tokens + size_.target;
  return name.starts_with("model.encoder.") || (has(name, "encoder_attn") && keys) ? size_.tokens : size_.target;
}

void Counter::cost(ModelPart& part) const {
  const Parameter& weight = part.parameters.front();
  if (!weight.name.ends_with(".weight") || !weight.options.learned) return;  // those that are not learned only serve other programs
  const Shape& shape = weight.tensor.shape();
  const int64_t all_rows = product({size_.batch, rows(part.name)});
  if (has(part.name, kLookedUp)) {
    if (has(part.name, kWords)) part.activation_bytes = product({kFloat, all_rows, shape.back()});
    if (has(part.name, "relative_content")) {  // a vector for every distance, whatever the batch
      const int64_t distances = 2 * std::max(rows(part.name), int64_t{1}) - 1;
      part.multiply_adds = product({distances, shape[0], shape[1]});
      part.activation_bytes = product({kFloat, distances, shape[0]});
    }
    return;
  }
  if (shape.rank() >= 2) part.multiply_adds = product({all_rows, weight.tensor.count()});
  part.activation_bytes = product({kFloat, all_rows, shape[0]});
}

// Words that are read and written with the same table.
void Counter::add_tied_head(std::vector<ModelPart>& parts) const {
  const std::string& architecture = model_.architecture();
  const bool bert = architecture == "BertForMaskedLM" || architecture == "BertForPreTraining";
  if (!bert && architecture != "GPT2LMHeadModel" && architecture != "LlamaForCausalLM" && architecture != "MarianMTModel") return;
  const std::string name = bert ? "cls.predictions.decoder" : "lm_head";
  const ModelPart* words = nullptr;
  for (const ModelPart& part : parts) {
    if (part.name == name) return;
    if (has(part.name, kWords) && part.parameters[0].options.learned) words = &part;  // the last: a decoder's behind an encoder's
  }
  if (!words) return;
  const Shape shape = words->parameters[0].tensor.shape();
  const int64_t all_rows = product({size_.batch, rows("lm_head")});
  parts.push_back({.name = name + ".(tied)",
                   .multiply_adds = product({all_rows, shape[0], shape[1]}),
                   .activation_bytes = product({kFloat, all_rows, shape[0]})});
}

void Counter::add_attention(ModelCost& out) const {
  const bool decoder = model_.architecture().starts_with("GPT2") || model_.architecture().starts_with("Llama");
  const bool causal = decoder || config_.flag("is_decoder", false);
  for (size_t begin = 0; begin < out.parts.size();) {
    const std::string path = attention_path(out.parts[begin].name);
    size_t end = begin + 1;
    if (path.empty()) {
      begin = end;
      continue;
    }
    AttentionShape at{.width = out.parts[begin].parameters[0].tensor.shape().back()};
    while (end < out.parts.size() && attention_path(out.parts[end].name) == path) ++end;
    for (size_t i = begin; i < end; ++i) at.see(out.parts[i]);
    const bool cross = path.ends_with("encoder_attn"), pooling = has(path, "pooling"), target = path.starts_with("model.decoder.");
    if (pooling)
      at.N = 1, at.M = size_.tokens, at.self = false;
    else if (cross)
      at.N = size_.target, at.M = size_.tokens, at.self = false;
    else
      at.N = at.M = kind_ == InputKind::translation && target ? size_.target : size_.tokens;
    at.causal = causal || target;
    at.grid = grid_;
    const ModelPart attend{.name = path + ".(attend)",
                           .multiply_adds = product({size_.batch, attention_multiply_adds(at, config_, path)}),
                           .activation_bytes = product({kFloat, size_.batch, at.N, at.output})};
    out.parts.insert(out.parts.begin() + static_cast<int64_t>(end), attend);
    if (cross) out.memory_bytes += kFloat * at.cached();
    if (!cross && (target || (decoder && !pooling))) out.cache_bytes += kFloat * at.cached();
    begin = end + 1;
  }
}

}  // namespace

InputKind input_kind(const Model& model) {
  if (std::find(model.inputs().begin(), model.inputs().end(), "pixel_values") != model.inputs().end()) return InputKind::picture;
  for (const Parameter& parameter : model.params().all())
    if (has(parameter.name, "encoder_attn")) return InputKind::translation;
  return model.architecture() == "MarianMTModel" ? InputKind::translation : InputKind::text;
}

int64_t most_tokens(const Model& model) {
  const Config config(model.config(), "config.json");
  if (config.below("heed").has("positions")) return int64_t{1} << 40;
  const std::string& name = model.architecture();
  if (name.starts_with("GPT2")) return config.size("n_positions", 1024);
  return config.size("max_position_embeddings", name.starts_with("Llama") ? 2048 : name.starts_with("Marian") ? 1024 : 512);
}

ModelCost cost_of(const Model& model, InputSize size) { return Counter(model, size).count(); }

}  // namespace heed
