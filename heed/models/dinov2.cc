// DINOv2 (Oquab et al. 2024), a vision transformer with layer scale and images of any size; and with registers (Darcet et al. 2024), tokens
// that belong to no patch.
#include "heed/models/vision.h"

namespace heed {
namespace {

int64_t dinov2_patch(bool registers) { return registers ? 16 : 14; }  // default of patch_size

FeedForwardOptions dinov2_feed_forward(const Config& config, int64_t D) {
  const auto width = static_cast<int64_t>(static_cast<float>(D) * config.number("mlp_ratio", 4, 1e-3, 1000));
  if (!config.flag("use_swiglu_ffn", false))
    return {.hidden_width = width, .activation = config.activation("hidden_act", "gelu"), .names = {.up = "fc1", .down = "fc2"}};
  // Two thirds of the width, since there are three matrices instead of two; a multiple of 8.
  return {.hidden_width = (2 * width / 3 + 7) / 8 * 8,
          .activation = Activation::silu,
          .gated = true,
          .fused = true,
          .names = {.up = "weights_in", .down = "weights_out"}};
}

int64_t registers_in(const Config& config, bool registers) { return registers ? config.size("num_register_tokens", 4) : 0; }

Vision make_dinov2(const Scope& scope, const Config& config, bool registers) {
  const int64_t D = config.size("hidden_size", 768);
  return Vision(scope, config,
                {.layer = {.attention = {.width = D,
                                         .heads = config.size("num_attention_heads", 12),
                                         .bias = config.flag("qkv_bias", true),
                                         .dropout = config.probability("attention_probs_dropout_prob", 0),
                                         .names = {"attention.query", "attention.key", "attention.value", "", "output.dense"}},
                           .feed_forward = dinov2_feed_forward(config, D),
                           .place = NormPlace::before,
                           .eps = config.epsilon("layer_norm_eps", 1e-6f),
                           .branch = {.dropout = config.probability("hidden_dropout_prob", 0),
                                      .stochastic_depth = config.probability("drop_path_rate", 0)},
                           .layer_scale = config.number("layerscale_value", 1)},
                 .names = {"attention", "norm1", "mlp", "norm2", {}, {}, "layer_scale1.lambda1", "layer_scale2.lambda1"},
                 .registers = registers_in(config, registers),
                 .mask_token = config.flag("use_mask_token", true),
                 .pools_patches = true,
                 .other_sizes = registers ? GridFilter::antialiased : GridFilter::bicubic,
                 .usual_patch = dinov2_patch(registers)});
}

Architectures of_dinov2(const std::string& name, bool registers, const std::string& bare, const std::string& classifier) {
  Family family = vision_family(
      name, [=](const Config& config) { return 1 + registers_in(config, registers); }, dinov2_patch(registers));
  family.extra_token = "register";
  family.image_processor = "Bit";
  family.other_sizes = registers ? GridFilter::antialiased : GridFilter::bicubic;
  family.task_parts.emplace_back("mask_token");
  for (const char* key : {"mlp_ratio", "use_swiglu_ffn", "layerscale_value", "drop_path_rate", "use_mask_token", "num_register_tokens"})
    family.keys.more.emplace_back(key);
  const auto scope_in = [](const Scope& root, const Config& config) {
    return root.with(initializer_from(config, "initializer_range", true));
  };
  const auto inner = [=](const Scope& root, const Config& config) {
    const Vision vision = make_dinov2(scope_in(root, config), config, registers);
    return Network{.run =
                       [=](const TensorMap& inputs, const ForwardOptions& options) {
                         TensorMap out;
                         const Tensor x = out["last_hidden_state"] = vision(inputs, options, out);
                         if (vision.class_token.defined()) out["pooler_output"] = pool_class(x);
                         return out;
                       },
                   .inputs = {"pixel_values", "bool_masked_pos"}};
  };
  const auto classify = [=](const Scope& root, const Config& config) {
    const Scope scope = scope_in(root, config);
    return image_classifier(scope, config, make_dinov2(scope / name, config, registers));
  };
  return of_family(std::move(family), {{bare, ModelTask::features, inner}, {classifier, ModelTask::image_classification, classify}});
}

}  // namespace

Architectures dinov2_architectures() {
  Architectures all = of_dinov2("dinov2", false, "Dinov2Model", "Dinov2ForImageClassification");
  const Architectures more =
      of_dinov2("dinov2_with_registers", true, "Dinov2WithRegistersModel", "Dinov2WithRegistersForImageClassification");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace heed
