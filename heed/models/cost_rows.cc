#include "heed/models/cost_rows.h"

#include <algorithm>

#include "heed/models/choices.h"
#include "heed/models/cost_attention.h"
#include "heed/models/cost_convolution.h"

namespace heed {
namespace {

using NameParts = std::initializer_list<const char*>;
constexpr NameParts kOfItems{"pooler", "pre_classifier", "seq_relationship", "cls_classifier", "distillation_classifier"};
constexpr NameParts kKeys{"key", "value", "k_proj", "v_proj", "k_lin", "v_lin"};

// The layer of a module: "vit.encoder.layer.11" for "vit.encoder.layer.11.output.dense".
std::string layer_of(const std::string& name) {
  const size_t at = name.find("encoder.layer.");
  return at == std::string::npos ? "" : name.substr(0, name.find('.', at + 14));
}

bool predicts_tokens(const std::string& architecture) {
  return is_one_of(architecture, {"BertForMaskedLM", "BertForPreTraining", "GPT2LMHeadModel", "LlamaForCausalLM", "MarianMTModel"});
}

}  // namespace

bool has_part(const std::string& name, NameParts choices) {
  const std::vector<std::string> parts = name_parts(name);
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) { return is_one_of(part, choices); });
}

CostRows::CostRows(const Model& model, InputSize size)
    : model_(model), config_(model.config(), "config.json"), size_(size), kind_(input_kind(model)) {
  resolve_size();
  const std::string& name = model.architecture();
  const bool masked = name == "BertForMaskedLM" || name == "BertForPreTraining";
  predicted_tokens_ = masked ? size_.labels : name == "GPT2LMHeadModel" || name == "LlamaForCausalLM" ? size_.tokens - 1 : size_.target;
  if (!skips_tokens()) return;
  last_layer_tokens_ = std::min(size_.tokens, masked ? size_.labels + 1 : 1);  // the first token and those with labels
  for (const Parameter& parameter : model.params().all())
    if (const std::string layer = layer_of(parameter.name); !layer.empty()) last_layer_ = layer;
}

void CostRows::resolve_size() {
  check<UsageError>(size_.batch >= 1 && size_.tokens >= 0 && size_.target >= 0 && size_.labels >= 0, "cost: a batch of ", size_.batch,
                    " and ", size_.tokens, " tokens, expected 1 or more");
  if (kind_ == InputKind::image) {
    const std::array<int64_t, 2> image = config_.sides("image_size", 224), patch = config_.sides("patch_size", 16);
    int64_t first = 0;
    bool patches = false;
    for (const Parameter& parameter : model_.params().all()) {
      first += parameter.name.ends_with("cls_token") || parameter.name.ends_with("distillation_token");
      patches = patches || has_part(parameter.name, "patch_embeddings");
    }
    if (patches) grid_ = {image[0] / patch[0], image[1] / patch[1]};
    patches_ = checked_multiply(grid_[0], grid_[1]);
    check<UsageError>(size_.tokens == 0 || size_.tokens == patches_ + first, "cost: ", size_.tokens,
                      " tokens, expected none: the image size is the model's, ", image[0], " x ", image[1]);
    size_.tokens = patches_ + first;
    return;
  }
  const int64_t positions = max_tokens(model_);
  if (size_.tokens == 0) size_.tokens = std::min<int64_t>(128, positions);
  if (kind_ == InputKind::translation && size_.target == 0) size_.target = size_.tokens;
  const int64_t longest = std::max(size_.tokens, size_.target);
  check<UsageError>(longest <= positions, "cost: ", longest, " tokens, the model has ", positions, " positions");
  if (size_.labels == 0) size_.labels = std::max<int64_t>(1, size_.tokens * 15 / 100);
  size_.labels = std::min(size_.labels, std::max<int64_t>(size_.tokens - 1, 1));
}

// Whether the heads read only some tokens and no score depends on the query's position, so that the last layer can skip tokens.
bool CostRows::skips_tokens() const {
  const std::string& name = model_.architecture();
  const Config own = config_.below("heed");
  const bool class_token = choices("pooling").in(own).name == "cls";
  const bool reads =
      name == "BertForMaskedLM" ||
      (class_token && is_one_of(name, {"ViTForImageClassification", "DeiTForImageClassification", "BertForSequenceClassification",
                                       "BertForNextSentencePrediction", "BertForPreTraining"}));
  if (!reads || config_.flag("is_decoder", false) || choices("attention").in(own).name != "soft") return false;
  if (own.has("pattern") || own.has("soft_cap")) return false;
  const std::vector<Chosen> positions = chosen_in(own, "positions");
  return std::all_of(positions.begin(), positions.end(),
                     [](const Chosen& each) { return each.choice->on_tokens || each.choice->name == "none"; });
}

int64_t CostRows::of(const std::string& module) const {
  const bool keys = has_part(module, kKeys);
  if (model_.architecture().starts_with("ResNet")) {
    const std::array<int64_t, 2> size = convolution_output_size(config_, module);
    return checked_multiply(size[0], size[1]);
  }
  if (has_part(module, "patch_embeddings")) return patches_;
  if (has_part(module, kOfItems) || (has_part(module, "pooling") && !keys)) return 1;
  if (has_part(module, "classifier") && model_.architecture().find("TokenClassification") == std::string::npos) return 1;
  if (kind_ != InputKind::translation) return size_.tokens;
  if (module == "model.shared") return size_.tokens + size_.target;
  return module.starts_with("model.encoder.") || (has_part(module, "encoder_attn") && keys) ? size_.tokens : size_.target;
}

int64_t CostRows::in_training(const std::string& module) const {
  if (predicts_tokens(model_.architecture()) && has_part(module, {"lm_head", "predictions"})) return predicted_tokens_;
  const std::string layer = layer_of(module);
  const bool before = has_part(module, "layernorm_before");  // the input of keys
  if (layer.empty() || layer != last_layer_ || has_part(module, kKeys) || before) return of(module);
  return last_layer_tokens_;
}

}  // namespace heed
