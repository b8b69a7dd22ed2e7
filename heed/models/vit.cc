// Vision transformers: ViT (Dosovitskiy et al. 2021), and DeiT (Touvron et al. 2021), which adds a distillation token.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/patches.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

struct Vision {
  PatchEmbedding patches;
  Tensor class_token, distillation_token;  // (1, 1, D); the second for DeiT; undefined with other pooling
  AddedPositions positions;
  std::vector<EncoderLayer> layers;
  Norm norm;  // final norm of pre-norm layers
  Pool pool;
  float dropout;
  std::array<int64_t, 2> image;  // height and width

  // (B, C, height, width) -> (B, N, D), or (B, 1, D) with first_only if the other tokens can be skipped
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, bool first_only = false) const {
    const Tensor pixels = required_input(inputs, "pixel_values");
    check(pixels.rank() == 4 && pixels.size(2) == image[0] && pixels.size(3) == image[1], "vit: pixel_values of shape ", pixels.shape(),
          ", expected (B, ", patches.weight.size(1), ", ", image[0], ", ", image[1], ")");
    const int64_t height = image[0] - image[0] % patches.weight.size(2), width = image[1] - image[1] % patches.weight.size(3);
    const Tensor tokens = patches(slice(slice(pixels, 2, 0, height), 3, 0, width));  // incomplete patches are dropped
    Tensors parts;
    for (const Tensor& token : {class_token, distillation_token})
      if (token.defined()) parts.push_back(expand(token, {tokens.size(0), 1, tokens.size(2)}));
    parts.push_back(tokens);
    OutputCollector collector(options);
    const bool skip = first_only && can_skip_tokens(layers, {}, options);
    const Tensor indices = skip ? Tensor::zeros({pixels.size(0), 1}, DType::i64, kCpu) : Tensor();
    const Tensor x =
        run_layers(layers, heed::dropout(positions(concat(parts, 1)), dropout, options.mode), {}, options, collector, {}, indices);
    collector.add_outputs(out, std::ssize(layers));
    return apply_norm(norm, x);
  }
};

TokenGrid vision_grid(const Config& config) {
  const std::array<int64_t, 2> image = config.sides("image_size", 224), patch = config.sides("patch_size", 16);
  for (size_t side = 0; side < 2; ++side)
    if (patch[side] > image[side]) config.refuse("patch_size", "at most image_size");
  return {image[0] / patch[0], image[1] / patch[1]};
}

bool has_class_token(const Config& config) {
  return choices("pooling").in(config.below("heed")).value == static_cast<int>(Pooling::class_token);
}

int64_t vision_tokens(const Config& config, bool distilled) {
  const TokenGrid grid = vision_grid(config);
  return checked_multiply(grid[0], grid[1]) + (!has_class_token(config) ? 0 : distilled ? 2 : 1);
}

constexpr LayerNames kVitLayer{"attention", "layernorm_before", "", "layernorm_after"};

LayerOptions vit_layer_options(const Config& config) {
  const int64_t D = config.size("hidden_size", 768), heads = config.size("num_attention_heads", 12);
  const float dropout = config.probability("hidden_dropout_prob", 0);
  return {.attention = {.width = D,
                        .heads = heads,
                        .head_width = config.size("head_dim", 0),
                        .bias = config.flag("qkv_bias", true),
                        .dropout = config.probability("attention_probs_dropout_prob", 0),
                        .names = {"attention.query", "attention.key", "attention.value", "", "output.dense"}},
          .feed_forward = {.hidden_width = config.size("intermediate_size", 3072),
                           .activation = config.activation("hidden_act", "gelu"),
                           .names = {.up = "intermediate.dense", .down = "output.dense"}},
          .place = NormPlace::before,
          .eps = config.epsilon("layer_norm_eps", 1e-12f),
          .branch = {.dropout = dropout}};
}

Vision make_vision(const Scope& scope, const Config& config, bool distilled) {
  const LayerOptions options = vit_layer_options(config);
  const int64_t D = options.attention.width;
  const std::array<int64_t, 2> image = config.sides("image_size", 224), patch = config.sides("patch_size", 16);
  const TokenGrid grid = vision_grid(config);
  const bool first_token = has_class_token(config);
  const int64_t tokens = vision_tokens(config, distilled);
  const Variant variant(config, tokens, first_token ? std::nullopt : std::optional(grid));
  const int64_t layers = config.size("num_hidden_layers", 12, 0);
  const Scope embeddings = scope / "embeddings";
  const auto token = [&](const char* name) { return embeddings.get(name, {1, 1, D}, initializer::zeros(), {.decays = false}); };
  const auto own = [&] {
    return AddedPositions{embeddings.get("position_embeddings", {1, tokens, D}, scope.initializer().position, {.decays = false})};
  };
  Vision vision{
      .patches = PatchEmbedding(embeddings / "patch_embeddings.projection", config.size("num_channels", 3), patch[0], patch[1], D, true),
      .class_token = first_token ? token("cls_token") : Tensor(),
      .distillation_token = first_token && distilled ? token("distillation_token") : Tensor(),
      .positions = variant.added_positions(embeddings, D, own),
      .layers = {},
      .norm = final_norm(scope / "layernorm", variant.apply(options)),
      .pool = variant.pool(scope / "pooling", options),
      .dropout = options.branch.dropout,
      .image = image};
  for (int64_t i = 0; i < layers; ++i)
    vision.layers.push_back(make_encoder_layer(scope / "encoder.layer" / i, variant.apply(options, i, layers), kVitLayer));
  return vision;
}

// The width of pooled images.
int64_t pooled_width(const Vision& vision) {
  const int64_t D = vision.patches.weight.size(0), P = vision.patches.weight.size(2), Q = vision.patches.weight.size(3);
  return vision.pool.kind == Pooling::flatten ? count({D, vision.image[0] / P, vision.image[1] / Q}) : D;
}

// (B, N, D) -> (B, D)
Tensor token_at(const Tensor& x, int64_t index) { return reshape(slice(x, 1, index, index + 1), {x.size(0), x.size(2)}); }

// The linear head; undefined if the config has no labels.
Linear classifier(const Scope& scope, const Config& config, int64_t width) {
  return config.labels() == 0 ? Linear() : Linear(scope, width, config.labels());
}
Tensor classified(const Linear& head, const Tensor& x) { return head.defined() ? head(x) : x; }

Network make_vit_classifier(const Scope& root, const Config& config, const char* base, bool distilled) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const Vision vision = make_vision(scope / base, config, distilled);
  const Linear head = classifier(scope / "classifier", config, pooled_width(vision));
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const bool first_only = vision.pool.kind == Pooling::class_token;
                out["logits"] = classified(head, vision.pool(vision(inputs, options, out, first_only), options.mode));
                if (const Tensor labels = optional_input(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config, options);
                return out;
              },
          .inputs = {"pixel_values", "labels"}};
}

// The class token and the distillation token have a head each; the logits are the mean of both.
Network make_distilled(const Scope& root, const Config& config) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const Vision vision = make_vision(scope / "deit", config, true);
  check(vision.distillation_token.defined(), "deit: heed.pooling leaves no distillation token, expected cls");
  const int64_t D = pooled_width(vision);
  const Linear own = classifier(scope / "cls_classifier", config, D), distilled = classifier(scope / "distillation_classifier", config, D);
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const Tensor x = vision(inputs, options, out);
                out["cls_logits"] = classified(own, token_at(x, 0));
                out["distillation_logits"] = classified(distilled, token_at(x, 1));
                out["logits"] = (out["cls_logits"] + out["distillation_logits"]) * 0.5f;
                return out;
              },
          .inputs = {"pixel_values"}};
}

Network make_bare_vit(const Scope& root, const Config& config, bool distilled) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const Vision vision = make_vision(scope, config, distilled);
  const int64_t D = config.size("hidden_size", 768);
  const Linear pooler = scope.provides("pooler.dense.weight")
                            ? Linear(scope / "pooler.dense", pooled_width(vision), config.size("pooler_output_size", D))
                            : Linear();
  const Activation activation = config.activation("pooler_act", "tanh");
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                out["last_hidden_state"] = vision(inputs, options, out);
                if (pooler.defined()) out["pooler_output"] = pooler(vision.pool(out["last_hidden_state"], options.mode), activation);
                return out;
              },
          .inputs = {"pixel_values"}};
}

// ViT, or DeiT, which is distilled.
Family vision_family(const char* name, bool distilled) {
  return {.model_type = name,
          .base = name,
          .pixels = true,
          .positions = [=](const Config& config) { return vision_tokens(config, distilled); },
          .position_table = "embeddings.position_embeddings",
          .default_position = "learned",
          .image_processor = distilled ? "DeiT" : "ViT",
          .keys = {.layers = {"num_hidden_layers"},
                   .heads = {"num_attention_heads"},
                   .width = {"hidden_size"},
                   .feed_forward = {"intermediate_size"},
                   .activation = {"hidden_act"},
                   .dropout = {"hidden_dropout_prob"},
                   .more = {"head_dim", "attention_probs_dropout_prob", "layer_norm_eps", "image_size", "patch_size", "num_channels",
                            "qkv_bias"}},
          .task_parts = {"pooler.", "pooling."}};
}

}  // namespace

Architectures vit_architectures() {
  const auto classify = [](const char* base, bool distilled) {
    return [=](const Scope& scope, const Config& config) { return make_vit_classifier(scope, config, base, distilled); };
  };
  const auto inner = [](bool distilled) {
    return [=](const Scope& scope, const Config& config) { return make_bare_vit(scope, config, distilled); };
  };
  Architectures all =
      of_family(vision_family("vit", false), {{"ViTModel", ModelTask::features, inner(false)},
                                              {"ViTForImageClassification", ModelTask::image_classification, classify("vit", false)}});
  const Architectures deit =
      of_family(vision_family("deit", true), {{"DeiTModel", ModelTask::features, inner(true)},
                                              {"DeiTForImageClassification", ModelTask::image_classification, classify("deit", true)},
                                              {"DeiTForImageClassificationWithTeacher", ModelTask::image_classification, make_distilled}});
  all.insert(all.end(), deit.begin(), deit.end());
  return all;
}

}  // namespace heed
