// Vision transformers: ViT (Dosovitskiy et al. 2021), and DeiT (Touvron et al. 2021), which adds a distillation token.
#include "heed/models/vision.h"

namespace heed {

Vision make_vit(const Scope& scope, const Config& config, bool distilled) {
  return Vision(scope, config,
                {.layer = {.attention = {.width = config.size("hidden_size", 768),
                                         .heads = config.size("num_attention_heads", 12),
                                         .head_width = config.size("head_dim", 0),
                                         .bias = config.flag("qkv_bias", true),
                                         .dropout = config.probability("attention_probs_dropout_prob", 0),
                                         .names = {"attention.query", "attention.key", "attention.value", "", "output.dense"}},
                           .feed_forward = {.hidden_width = config.size("intermediate_size", 3072),
                                            .activation = config.activation("hidden_act", "gelu"),
                                            .names = {.up = "intermediate.dense", .down = "output.dense"}},
                           .place = NormPlace::before,
                           .eps = config.epsilon("layer_norm_eps", 1e-12f),
                           .branch = {.dropout = config.probability("hidden_dropout_prob", 0)}},
                 .names = {"attention", "layernorm_before", "", "layernorm_after"},
                 .distillation_token = distilled});
}

namespace {

Scope vit_scope(const Scope& root, const Config& config) { return root.with(initializer_from(config, "initializer_range", true)); }

// (B, N, D) -> (B, D)
Tensor token_at(const Tensor& x, int64_t index) { return reshape(slice(x, 1, index, index + 1), {x.size(0), x.size(2)}); }

// The class token and the distillation token have a head each; the logits are the mean of both.
Network make_distilled(const Scope& root, const Config& config) {
  const Scope scope = vit_scope(root, config);
  const Vision vision = make_vit(scope / "deit", config, true);
  check(vision.distillation_token.defined(), "deit: heed.pooling leaves no distillation token, expected cls");
  const int64_t D = vision.pooled_width();
  const Linear own = label_head(scope / "cls_classifier", config, D), distilled = label_head(scope / "distillation_classifier", config, D);
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const Tensor x = vision(inputs, options, out);
                out["cls_logits"] = apply_head(own, token_at(x, 0));
                out["distillation_logits"] = apply_head(distilled, token_at(x, 1));
                out["logits"] = (out["cls_logits"] + out["distillation_logits"]) * 0.5f;
                return out;
              },
          .inputs = {"pixel_values"}};
}

Network make_bare_vit(const Scope& root, const Config& config, bool distilled) {
  const Scope scope = vit_scope(root, config);
  const Vision vision = make_vit(scope, config, distilled);
  const int64_t D = config.size("hidden_size", 768);
  const Linear pooler = scope.provides("pooler.dense.weight")
                            ? Linear(scope / "pooler.dense", vision.pooled_width(), config.size("pooler_output_size", D))
                            : Linear();
  const Activation activation = config.activation("pooler_act", "tanh");
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                out["last_hidden_state"] = vision(inputs, options, out);
                if (pooler.defined()) out["pooler_output"] = pooler(vision.pooled(out["last_hidden_state"], options.mode), activation);
                return out;
              },
          .inputs = {"pixel_values"}};
}

// ViT, or DeiT, which is distilled.
Architectures of_vit(const std::string& name, bool distilled, const std::string& bare, const std::string& classifier) {
  Family family = vision_family(name, [=](const Config&) { return distilled ? 2 : 1; });
  family.image_processor = distilled ? "DeiT" : "ViT";
  family.keys.feed_forward = {"intermediate_size"};
  family.keys.more.emplace_back("head_dim");
  family.task_parts.emplace_back("pooler.");
  const auto inner = [=](const Scope& scope, const Config& config) { return make_bare_vit(scope, config, distilled); };
  const auto classify = [=](const Scope& root, const Config& config) {
    const Scope scope = vit_scope(root, config);
    return image_classifier(scope, config, make_vit(scope / name, config, distilled));
  };
  Architectures heads{{bare, ModelTask::features, inner}, {classifier, ModelTask::image_classification, classify}};
  if (distilled) heads.push_back({"DeiTForImageClassificationWithTeacher", ModelTask::image_classification, make_distilled});
  return of_family(std::move(family), std::move(heads));
}

}  // namespace

Architectures vit_architectures() {
  Architectures all = of_vit("vit", false, "ViTModel", "ViTForImageClassification");
  const Architectures deit = of_vit("deit", true, "DeiTModel", "DeiTForImageClassification");
  all.insert(all.end(), deit.begin(), deit.end());
  return all;
}

}  // namespace heed
