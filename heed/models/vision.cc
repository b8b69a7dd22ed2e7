#include "heed/models/vision.h"

namespace heed {
namespace {

TokenGrid vision_grid(const Config& config, int64_t usual_patch) {
  const std::array<int64_t, 2> image = config.sides("image_size", 224), patch = config.sides("patch_size", usual_patch);
  for (size_t side = 0; side < 2; ++side)
    if (patch[side] > image[side]) config.refuse("patch_size", "at most image_size");
  return {image[0] / patch[0], image[1] / patch[1]};
}

bool has_class_token(const Config& config) {
  return choices("pooling").in(config.below("heed")).value == static_cast<int>(Pooling::class_token);
}

}  // namespace

int64_t vision_tokens(const Config& config, int64_t others, int64_t usual_patch) {
  const TokenGrid grid = vision_grid(config, usual_patch);
  return checked_multiply(grid[0], grid[1]) + (has_class_token(config) ? others : 0);
}

Vision::Vision(const Scope& scope, const Config& config, const VisionOptions& options)
    : pools_patches(options.pools_patches),
      dropout(options.layer.branch.dropout),
      image(config.sides("image_size", 224)),
      grid(vision_grid(config, options.usual_patch)),
      other_sizes(options.other_sizes) {
  const int64_t D = options.layer.attention.width, layer_count = config.size("num_hidden_layers", 12, 0);
  const std::array<int64_t, 2> patch = config.sides("patch_size", options.usual_patch);
  const bool first = has_class_token(config);
  const int64_t placed = vision_tokens(config, options.distillation_token ? 2 : 1, options.usual_patch);  // tokens with positions
  const Variant variant(config, placed + (first ? options.registers : 0), first ? std::nullopt : std::optional(grid));
  const Scope embeddings = scope / "embeddings";
  const auto tokens = [&](const char* name, const Shape& shape, bool exist) {
    return exist ? embeddings.get(name, shape, initializer::zeros(), {.decays = false}) : Tensor();
  };
  patches = PatchEmbedding(embeddings / "patch_embeddings.projection", config.size("num_channels", 3), patch[0], patch[1], D, true);
  class_token = tokens("cls_token", {1, 1, D}, first);
  distillation_token = tokens("distillation_token", {1, 1, D}, first && options.distillation_token);
  registers = tokens("register_tokens", {1, options.registers, D}, first && options.registers > 0);
  mask_token = tokens("mask_token", {1, D}, options.mask_token && embeddings.provides("mask_token"));
  positions = variant.added_positions(embeddings, D, [&] {
    return AddedPositions{embeddings.get("position_embeddings", {1, placed, D}, scope.initializer().position, {.decays = false})};
  });
  positions.fixed = (class_token.defined() ? 1 : 0) + (distillation_token.defined() ? 1 : 0);
  norm = final_norm(scope / "layernorm", variant.apply(options.layer));
  pool = variant.pool(scope / "pooling", options.layer);
  for (int64_t i = 0; i < layer_count; ++i)
    layers.push_back(make_encoder_layer(scope / "encoder.layer" / i, variant.apply(options.layer, i, layer_count), options.names));
}

Tensor Vision::operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, bool pooled_only,
                          const std::string& prefix) const {
  const Tensor pixels = required_input(inputs, "pixel_values");
  const int64_t P = patches.kernel[2], Q = patches.kernel[3];
  const bool fits = pixels.rank() == 4 &&
                    (other_sizes ? pixels.size(2) >= P && pixels.size(3) >= Q : pixels.size(2) == image[0] && pixels.size(3) == image[1]);
  check(fits, "vit: pixel_values of shape ", pixels.shape(), ", expected (B, ", patches.kernel[1], ", ", image[0], ", ", image[1], ")");
  const TokenGrid size{pixels.size(2) / P, pixels.size(3) / Q};
  // Incomplete patches are dropped.
  Tensor tokens = patches(slice(slice(pixels, 2, 0, size[0] * P), 3, 0, size[1] * Q), options.precision);
  const int64_t B = tokens.size(0), D = tokens.size(2);
  if (const Tensor masked = optional_input(inputs, "bool_masked_pos"); masked.defined()) {
    check(mask_token.defined(), "vit: bool_masked_pos, but the model has no mask_token");
    tokens = where(reshape(converted(masked, DType::boolean), {B, tokens.size(1), 1}).to(tokens.device()), mask_token, tokens);
  }
  const auto each = [&](const Tensor& token) { return expand(token, {B, token.size(1), D}); };
  Tensors parts;
  for (const Tensor& token : {class_token, distillation_token})
    if (token.defined()) parts.push_back(each(token));
  parts.push_back(tokens);
  Tensor all = positioned(concat(parts, 1), size);
  if (registers.defined()) all = concat({slice(all, 1, 0, 1), each(registers), slice(all, 1, 1, all.size(1))}, 1);
  OutputCollector collector(options);
  const bool skip = pooled_only && pool.kind == Pooling::class_token && !pools_patches && can_skip_tokens(layers, {}, options);
  const Tensor x = run_layers(layers, heed::dropout(all, dropout, options.mode), {}, options, collector, {},
                              skip ? first_rows(B, all.size(1)) : Tensor());
  collector.add_outputs(out, std::ssize(layers), prefix);
  return apply_norm(norm, x);
}

Tensor Vision::positioned(const Tensor& x, const TokenGrid& size) const {
  if (!other_sizes || size == grid) return positions(x);
  check(positions.table.defined(), "vit: images of ", size[0], " x ", size[1], " patches, expected ", grid[0], " x ", grid[1],
        ": only learned positions are interpolated");
  const Tensor rows = reshape(positions.table, {positions.table.size(1), x.size(2)});
  const int64_t P = rows.size(0), first = P - grid[0] * grid[1];
  const Tensor cells = interpolated_grid(slice(rows, 0, first, P), grid, size, *other_sizes);
  return positions.content(x) + (first == 0 ? cells : concat({slice(rows, 0, 0, first), cells}, 0));
}

Tensor Vision::pooled(const Tensor& x, Mode mode) const {
  const Tensor token = pool(x, mode);
  if (!pools_patches || pool.kind != Pooling::class_token) return token;
  const int64_t first = 1 + (registers.defined() ? registers.size(1) : 0);
  return concat({token, pool_mean(slice(x, 1, first, x.size(1)))}, 1);
}

int64_t Vision::pooled_width() const {
  const int64_t D = patches.kernel[0];
  if (pool.kind == Pooling::flatten) return count({D, grid[0], grid[1]});
  return pools_patches && pool.kind == Pooling::class_token ? 2 * D : D;
}

Linear label_head(const Scope& scope, const Config& config, int64_t width) {
  return config.labels() == 0 ? Linear() : Linear(scope, width, config.labels());
}

Network image_classifier(const Scope& scope, const Config& config, const Vision& vision) {
  const Linear head = label_head(scope / "classifier", config, vision.pooled_width());
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                out["logits"] = apply_head(head, vision.pooled(vision(inputs, options, out, true), options.mode));
                if (const Tensor labels = optional_input(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config, options);
                return out;
              },
          .inputs = {"pixel_values", "labels"}};
}

Family vision_family(const std::string& name, const std::function<int64_t(const Config&)>& others, int64_t usual_patch) {
  return {.model_type = name,
          .base = name,
          .pixels = true,
          .positions = [=](const Config& config) { return vision_tokens(config, others(config), usual_patch); },
          .position_table = "embeddings.position_embeddings",
          .default_position = "learned",
          .usual_patch = usual_patch,
          .keys = {.layers = {"num_hidden_layers"},
                   .heads = {"num_attention_heads"},
                   .width = {"hidden_size"},
                   .activation = {"hidden_act"},
                   .dropout = {"hidden_dropout_prob"},
                   .more = {"attention_probs_dropout_prob", "layer_norm_eps", "image_size", "patch_size", "num_channels", "qkv_bias"}},
          .task_parts = {"pooling."}};
}

}  // namespace heed
