// Vision transformers: ViT (Dosovitskiy et al. 2021), and DeiT (Touvron et al. 2021), which adds a token that learns from a
// teacher.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/patches.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

struct Vision {
  PatchEmbedding patches;
  Tensor class_token, teacher_token;  // (1, 1, D); the second is DeiT's or undefined
  Tensor positions;                   // (1, N, D)
  std::vector<EncoderLayer> layers;
  Norm norm;
  float dropout;
  std::vector<int64_t> image;  // height and width

  // (B, C, height, width) -> (B, N, D)
  Tensor operator()(const Named& inputs, const Ask& ask, Named& out) const {
    const Tensor pixels = needed(inputs, "pixel_values");
    check(pixels.rank() == 4 && pixels.size(2) == image[0] && pixels.size(3) == image[1], "vit: pixel_values of shape ", pixels.shape(),
          ", expected (B, ", patches.weight.size(1), ", ", image[0], ", ", image[1], ")");
    const int64_t height = image[0] - image[0] % patches.weight.size(2), width = image[1] - image[1] % patches.weight.size(3);
    const Tensor tokens = patches(slice(slice(pixels, 2, 0, height), 3, 0, width));  // what fills no patch is not seen
    const auto for_all = [&](const Tensor& token) { return expand(token, {tokens.size(0), 1, tokens.size(2)}); };
    Tensors parts{for_all(class_token)};
    if (teacher_token.defined()) parts.push_back(for_all(teacher_token));
    parts.push_back(tokens);
    Witness witness(ask);
    const Tensor x = run_layers(layers, heed::dropout(concat(parts, 1) + positions, dropout, ask.mode), {}, ask, witness);
    witness.tell(out, std::ssize(layers));
    return norm(x);
  }
};

constexpr LayerNames kNames{"attention", "layernorm_before", "", "layernorm_after"};

LayerOptions layer_options(const Config& config) {
  const int64_t D = config.size("hidden_size", 768), heads = config.size("num_attention_heads", 12);
  const float dropout = config.probability("hidden_dropout_prob", 0);
  return {.attention = {.width = D,
                        .heads = heads,
                        .head_width = config.size("head_dim", D / heads),
                        .bias = config.flag("qkv_bias", true),
                        .dropout = config.probability("attention_probs_dropout_prob", 0),
                        .names = {"attention.query", "attention.key", "attention.value", "", "output.dense"}},
          .feed_forward = {.wide = config.size("intermediate_size", 4 * D),
                           .activation = config.activation("hidden_act", "gelu"),
                           .names = {.up = "intermediate.dense", .down = "output.dense"}},
          .place = NormPlace::before,
          .eps = config.number("layer_norm_eps", 1e-12f),
          .branch = {.dropout = dropout}};
}

Vision make_vision(const Scope& scope, const Config& config, bool teacher) {
  const LayerOptions options = layer_options(config);
  const int64_t D = options.attention.width;
  std::vector<int64_t> image = config.sizes("image_size", {224}), patch = config.sizes("patch_size", {16});
  image.resize(2, image[0]);
  patch.resize(2, patch[0]);
  const int64_t tokens = (image[0] / patch[0]) * (image[1] / patch[1]) + (teacher ? 2 : 1);
  const Scope embeddings = scope / "embeddings";
  Vision made{
      .patches = PatchEmbedding(embeddings / "patch_embeddings.projection", config.size("num_channels", 3), patch[0], patch[1], D, true),
      .class_token = embeddings.get("cls_token", {1, 1, D}, initial::zeros(), {.decays = false}),
      .teacher_token = {},
      .positions = embeddings.get("position_embeddings", {1, tokens, D}, scope.initial().position, {.decays = false}),
      .layers = {},
      .norm = Norm(scope / "layernorm", D, options.eps),
      .dropout = options.branch.dropout,
      .image = image};
  if (teacher) made.teacher_token = embeddings.get("distillation_token", {1, 1, D}, initial::zeros(), {.decays = false});
  for (int64_t i = 0; i < config.size("num_hidden_layers", 12, 0); ++i)
    made.layers.push_back(make_encoder_layer(scope / "encoder.layer" / i, options, kNames));
  return made;
}

// The token at a place. (B, N, D) -> (B, D)
Tensor token_at(const Tensor& x, int64_t place) { return reshape(slice(x, 1, place, place + 1), {x.size(0), x.size(2)}); }

// A linear layer to the labels, or nothing where there are none.
Linear classifier(const Scope& scope, const Config& config) {
  return config.labels() == 0 ? Linear() : Linear(scope, config.size("hidden_size", 768), config.labels());
}
Tensor classified(const Linear& head, const Tensor& x) { return head.defined() ? head(x) : x; }

Network make_classifier(const Scope& root, const Config& config, const char* base, bool teacher) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const Vision vision = make_vision(scope / base, config, teacher);
  const Linear head = classifier(scope / "classifier", config);
  return {.run =
              [=](const Named& inputs, const Ask& ask) {
                Named out;
                out["logits"] = classified(head, token_at(vision(inputs, ask, out), 0));
                if (const Tensor labels = given(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config);
                return out;
              },
          .inputs = {"pixel_values", "labels"}};
}

// Both tokens have a head; predictions are the mean of the two.
Network make_taught(const Scope& root, const Config& config) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const Vision vision = make_vision(scope / "deit", config, true);
  const Linear own = classifier(scope / "cls_classifier", config), taught = classifier(scope / "distillation_classifier", config);
  return {.run =
              [=](const Named& inputs, const Ask& ask) {
                Named out;
                const Tensor x = vision(inputs, ask, out);
                out["cls_logits"] = classified(own, token_at(x, 0));
                out["distillation_logits"] = classified(taught, token_at(x, 1));
                out["logits"] = (out["cls_logits"] + out["distillation_logits"]) * 0.5f;
                return out;
              },
          .inputs = {"pixel_values"}};
}

Network make_inner(const Scope& root, const Config& config, bool teacher) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const Vision vision = make_vision(scope, config, teacher);
  const int64_t D = config.size("hidden_size", 768);
  const Linear pooler(scope / "pooler.dense", D, config.size("pooler_output_size", D));
  const Activation activation = config.activation("pooler_act", "tanh");
  return {.run =
              [=](const Named& inputs, const Ask& ask) {
                Named out;
                out["last_hidden_state"] = vision(inputs, ask, out);
                out["pooler_output"] = pooler(token_at(out["last_hidden_state"], 0), activation);
                return out;
              },
          .inputs = {"pixel_values"}};
}

}  // namespace

Architectures vit_architectures() {
  const auto classify = [](const char* base, bool teacher) {
    return [=](const Scope& scope, const Config& config) { return make_classifier(scope, config, base, teacher); };
  };
  const auto inner = [](bool teacher) {
    return [=](const Scope& scope, const Config& config) { return make_inner(scope, config, teacher); };
  };
  return {{.name = "ViTForImageClassification", .base = "vit", .make = classify("vit", false)},
          {.name = "ViTModel", .base = "vit", .bare = true, .make = inner(false)},
          {.name = "DeiTForImageClassification", .base = "deit", .make = classify("deit", true)},
          {.name = "DeiTForImageClassificationWithTeacher", .base = "deit", .make = make_taught},
          {.name = "DeiTModel", .base = "deit", .bare = true, .make = inner(true)}};
}

}  // namespace heed
