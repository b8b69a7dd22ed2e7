#include "heed/models/cost_rows.h"

#include <algorithm>

#include "heed/models/cost_attention.h"
#include "heed/models/cost_convolution.h"

namespace heed {
namespace {

using Words = std::initializer_list<const char*>;
constexpr Words kOfItems{"pooler", "pre_classifier", "seq_relationship", "cls_classifier", "distillation_classifier"};
constexpr Words kKeys{"key", "value", "k_proj", "v_proj", "k_lin", "v_lin"};

// The layer that a module lies in: "vit.encoder.layer.11" of "vit.encoder.layer.11.output.dense".
std::string layer_of(const std::string& name) {
  const size_t at = name.find("encoder.layer.");
  return at == std::string::npos ? "" : name.substr(0, name.find('.', at + 14));
}

bool tells_words(const std::string& architecture) {
  return is_one_of(architecture, {"BertForMaskedLM", "BertForPreTraining", "GPT2LMHeadModel", "LlamaForCausalLM", "MarianMTModel"});
}

}  // namespace

bool has_word(const std::string& name, Words words) {
  const std::vector<std::string> parts = name_words(name);
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) { return is_one_of(part, words); });
}

CostRows::CostRows(const Model& model, InputSize size)
    : model_(model), config_(model.config(), "config.json"), size_(size), kind_(input_kind(model)) {
  settle();
  const std::string& name = model.architecture();
  const bool hides = name == "BertForMaskedLM" || name == "BertForPreTraining";
  told_ = hides ? size_.labels : name == "GPT2LMHeadModel" || name == "LlamaForCausalLM" ? size_.tokens - 1 : size_.target;
  if (!leaves_out()) return;
  read_ = std::min(size_.tokens, hides ? size_.labels + 1 : 1);  // the first token, and those with labels
  for (const Parameter& parameter : model.params().all())
    if (const std::string layer = layer_of(parameter.name); !layer.empty()) last_layer_ = layer;
}

void CostRows::settle() {
  check<UsageError>(size_.batch >= 1 && size_.tokens >= 0 && size_.target >= 0 && size_.labels >= 0, "cost: a batch of ", size_.batch,
                    " and ", size_.tokens, " tokens, expected 1 or more");
  if (kind_ == InputKind::picture) {
    const std::array<int64_t, 2> image = config_.sides("image_size", 224), patch = config_.sides("patch_size", 16);
    int64_t first = 0;
    bool patches = false;
    for (const Parameter& parameter : model_.params().all()) {
      first += parameter.name.ends_with("cls_token") || parameter.name.ends_with("distillation_token");
      patches = patches || has_word(parameter.name, "patch_embeddings");
    }
    if (patches) grid_ = {image[0] / patch[0], image[1] / patch[1]};
    patches_ = checked_multiply(grid_[0], grid_[1]);
    check<UsageError>(size_.tokens == 0 || size_.tokens == patches_ + first, "cost: ", size_.tokens,
                      " tokens, expected none: the size of pictures is the model's, ", image[0], " x ", image[1]);
    size_.tokens = patches_ + first;
    return;
  }
  const int64_t places = most_tokens(model_);
  if (size_.tokens == 0) size_.tokens = std::min<int64_t>(128, places);
  if (kind_ == InputKind::translation && size_.target == 0) size_.target = size_.tokens;
  const int64_t longest = std::max(size_.tokens, size_.target);
  check<UsageError>(longest <= places, "cost: ", longest, " tokens, the model has ", places, " positions");
  if (size_.labels == 0) size_.labels = std::max<int64_t>(1, size_.tokens * 15 / 100);
  size_.labels = std::min(size_.labels, std::max<int64_t>(size_.tokens - 1, 1));
}

// Whether heads read so few tokens that the last layer need not give them all, and nothing in its scores tells where a query stands.
bool CostRows::leaves_out() const {
  const std::string& name = model_.architecture();
  const Config own = config_.below("heed");
  const bool class_token = own.word("pooling", "cls") == "cls";
  const bool reads =
      name == "BertForMaskedLM" ||
      (class_token && is_one_of(name, {"ViTForImageClassification", "DeiTForImageClassification", "BertForSequenceClassification",
                                       "BertForNextSentencePrediction", "BertForPreTraining"}));
  if (!reads || config_.flag("is_decoder", false) || own.word("attention", "soft") != "soft") return false;
  if (own.has("pattern") || own.has("soft_cap")) return false;
  if (!own.has("positions")) return true;
  const Json& found = own.json().at("positions");
  for (const Json& each : found.is_array() ? found : Json::array({found}))
    if (!is_one_of(each.get<std::string>(), {"none", "learned", "learned_2d", "sinusoidal", "sinusoidal_2d"})) return false;
  return true;
}

int64_t CostRows::of(const std::string& module) const {
  const bool keys = has_word(module, kKeys);
  if (model_.architecture().starts_with("ResNet")) {
    const std::array<int64_t, 2> places = convolution_places(config_, module);
    return checked_multiply(places[0], places[1]);
  }
  if (has_word(module, "patch_embeddings")) return patches_;
  if (has_word(module, kOfItems) || (has_word(module, "pooling") && !keys)) return 1;
  if (has_word(module, "classifier") && model_.architecture().find("TokenClassification") == std::string::npos) return 1;
  if (kind_ != InputKind::translation) return size_.tokens;
  if (module == "model.shared") return size_.tokens + size_.target;
  return module.starts_with("model.encoder.") || (has_word(module, "encoder_attn") && keys) ? size_.tokens : size_.target;
}

int64_t CostRows::in_training(const std::string& module) const {
  if (tells_words(model_.architecture()) && has_word(module, {"lm_head", "predictions"})) return told_;
  const std::string layer = layer_of(module);
  const bool before = has_word(module, "layernorm_before");  // keys are made of it
  if (layer.empty() || layer != last_layer_ || has_word(module, kKeys) || before) return of(module);
  return read_;
}

}  // namespace heed
