// CLIP (Radford et al. 2021): an image encoder and a causal text encoder whose vectors are compared. With one kind of input, only its
// encoder runs, and its states and maps have plain names. Text embeddings may be given as an input, so that those of labels are computed
// only once.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/patches.h"
#include "heed/ops/batch_shards.h"

namespace heed {
namespace {

constexpr LayerNames kClipLayer{"self_attn", "layer_norm1", "mlp", "layer_norm2"};
constexpr int64_t kClipPatch = 32;   // default of patch_size
constexpr int64_t kOldEndToken = 2;  // in configs of old checkpoints, whose end token is the one with the largest id

struct ClipText {
  Embedding word_embeddings;
  AddedPositions positions;
  std::vector<EncoderLayer> layers;
  Norm norm;
  Linear projection;  // (E, D)
  int64_t end_token;

  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix) const;  // -> (B, E)
};

struct ClipVision {
  PatchEmbedding patches;
  Tensor class_token;  // (D)
  AddedPositions positions;
  Norm first, last;
  std::vector<EncoderLayer> layers;
  Linear projection;  // (E, D)
  int64_t side;       // of images

  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix) const;  // -> (B, E)
};

// The end token of every text, the first of its kind, as a row of (B N). tokens: (B, N) -> (B, 1)
Tensor end_rows(const Tensor& tokens, int64_t end_token) {
  std::vector<int64_t> out;
  for (const std::vector<int64_t>& row : rows_of(tokens, tokens.size(0), tokens.size(1))) {
    const auto found = end_token == kOldEndToken ? std::max_element(row.begin(), row.end()) : std::find(row.begin(), row.end(), end_token);
    out.push_back(std::ssize(out) * tokens.size(1) + (found == row.end() ? 0 : found - row.begin()));
  }
  return Tensor::from(out, {tokens.size(0), 1}, kCpu);
}

// (B, N, D), the tokens in rows (B, 1) -> (B, D)
Tensor states_at(const Tensor& x, const Tensor& rows) { return reshape(gather_tokens(x, rows), {x.size(0), x.size(2)}); }

Tensor ClipText::operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix) const {
  const Tensor tokens = token_input(inputs, "input_ids"), position_ids = optional_input(inputs, "position_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1);
  const Tensor x = positions(word_embeddings(tokens), position_ids);
  const AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, N, true, x.device())};
  OutputCollector collector(options);
  const Tensor y = norm(run_layers(layers, x, attention, options, collector, position_ids));
  collector.add_outputs(out, std::ssize(layers), prefix);
  out[prefix + "last_hidden_state"] = y;
  return out[prefix + "pooler_output"] = projection(states_at(y, end_rows(tokens, end_token)));
}

Tensor ClipVision::operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix) const {
  const Tensor pixels = required_input(inputs, "pixel_values");
  const int64_t patch = patches.kernel[2], D = patches.kernel[0], used = side - side % patch;
  check(pixels.rank() == 4 && pixels.size(2) == side && pixels.size(3) == side, "clip: pixel_values of shape ", pixels.shape(),
        ", expected (B, ", patches.kernel[1], ", ", side, ", ", side, ")");
  const Tensor tokens = patches(slice(slice(pixels, 2, 0, used), 3, 0, used));  // incomplete patches are dropped
  const Tensor token = expand(reshape(class_token, {1, 1, D}), {tokens.size(0), 1, D});
  OutputCollector collector(options);
  const Tensor x = run_layers(layers, first(positions(concat({token, tokens}, 1))), {}, options, collector);
  collector.add_outputs(out, std::ssize(layers), prefix);
  out[prefix + "last_hidden_state"] = x;
  return out[prefix + "pooler_output"] = projection(last(reshape(slice(x, 1, 0, 1), {x.size(0), D})));
}

int64_t clip_positions(const Config& text) { return text.size("max_position_embeddings", 77); }

LayerOptions clip_options(const Config& config, int64_t D, int64_t heads, int64_t hidden_width) {
  return {.attention = {.width = D,
                        .heads = config.size("num_attention_heads", heads),
                        .dropout = config.probability("attention_dropout", 0),
                        .names = {"q_proj", "k_proj", "v_proj", "", "out_proj"}},
          .feed_forward = {.hidden_width = config.size("intermediate_size", hidden_width),
                           .activation = config.activation("hidden_act", "quick_gelu"),
                           .names = {.up = "fc1", .down = "fc2"}},
          .place = NormPlace::before,
          .eps = config.epsilon("layer_norm_eps", 1e-5f)};
}

std::vector<EncoderLayer> clip_layers(const Scope& scope, const Config& config, const Variant& variant, const LayerOptions& options) {
  std::vector<EncoderLayer> out;
  const int64_t layers = config.size("num_hidden_layers", 12, 0);
  for (int64_t i = 0; i < layers; ++i)
    out.push_back(make_encoder_layer(scope / "encoder.layers" / i, variant.apply(options, i, layers), kClipLayer));
  return out;
}

ClipText make_clip_text(const Scope& root, const Config& config, int64_t E) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", false)) / "text_model", embeddings = scope / "embeddings";
  const int64_t D = config.size("hidden_size", 512), P = clip_positions(config);
  const LayerOptions options = clip_options(config, D, 8, 2048);
  const Variant variant(config, P);
  return {.word_embeddings = Embedding(embeddings / "token_embedding", config.size("vocab_size", 49408), D),
          .positions = variant.added_positions(
              embeddings, D, [&] { return AddedPositions{LearnedPositions(embeddings / "position_embedding", P, D).weight}; }),
          .layers = clip_layers(scope, config, variant, options),
          .norm = Norm(scope / "final_layer_norm", D, options.eps),
          .projection = Linear(root / "text_projection", D, E, {.bias = false}),
          .end_token = config.size("eos_token_id", 49407, 0)};
}

ClipVision make_clip_vision(const Scope& root, const Config& config, int64_t E) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", false)) / "vision_model", embeddings = scope / "embeddings";
  const int64_t D = config.size("hidden_size", 768), side = config.sides("image_size", 224)[0],
                patch = config.sides("patch_size", kClipPatch)[0];
  if (patch > side) config.refuse("patch_size", "at most image_size");
  const int64_t tokens = (side / patch) * (side / patch) + 1;
  const LayerOptions options = clip_options(config, D, 12, 3072);
  const Variant variant(config, tokens);
  AddedPositions positions = variant.added_positions(
      embeddings, D, [&] { return AddedPositions{LearnedPositions(embeddings / "position_embedding", tokens, D).weight}; });
  positions.fixed = 1;
  return {.patches = PatchEmbedding(embeddings / "patch_embedding", config.size("num_channels", 3), patch, D, false),
          .class_token = embeddings.get("class_embedding", {D}, scope.initializer().embedding, {.decays = false}),
          .positions = positions,
          .first = Norm(scope / "pre_layrnorm", D, options.eps),
          .last = Norm(scope / "post_layernorm", D, options.eps),
          .layers = clip_layers(scope, config, variant, options),
          .projection = Linear(root / "visual_projection", D, E, {.bias = false}),
          .side = side};
}

Tensor unit_length(const Tensor& x) { return x / sqrt(sum(x * x, {1}, true)); }  // of rows. (B, E) -> (B, E)

// Row i of x belongs to row first + i of y. x: (b, E), y: (B, E), factor: ()
Tensor loss_of_rows(const Tensor& x, const Tensor& y, const Tensor& factor, int64_t first, const ForwardOptions& options) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < x.size(0); ++i) numbers.push_back(first + i);
  return token_loss(matmul(x, transpose(y, 0, 1)) * factor, Tensor::from(numbers, {x.size(0)}, kCpu), options);
}

// The same for texts of images and images of texts.
Tensor loss_both_ways(const Tensor& texts, const Tensor& images, const Tensor& all_texts, const Tensor& all_images, const Tensor& factor,
                      int64_t first, const ForwardOptions& options) {
  return (loss_of_rows(texts, all_images, factor, first, options) + loss_of_rows(images, all_texts, factor, first, options)) * 0.5f;
}

// Of a batch in shards: the loss of the shard's own rows, compared with those of all shards. The losses of other rows depend on the
// shard's vectors, too; they are added without their value, so that the gradients of all shards sum to that of the whole batch.
Tensor loss_of_shard(const Tensor& texts, const Tensor& images, const Tensor& factor, BatchShards& shards, const ForwardOptions& options) {
  const int64_t b = texts.size(0), E = texts.size(1);
  std::vector<double> own;
  for (const Tensor* x : {&texts, &images})
    for (const float value : x->detach().to_vector<float>()) own.push_back(static_cast<double>(value));
  const std::vector<std::vector<double>> all = shards.all_of(own);
  Tensors all_texts, all_images;
  int64_t first = 0, B = 0;
  for (size_t shard = 0; shard < all.size(); ++shard) {
    const bool is_own = shard == shards.place();
    const int64_t rows = std::ssize(all[shard]) / (2 * E);
    const std::vector<float> values(all[shard].begin(), all[shard].end());
    const auto part = [&](int64_t begin) {
      return Tensor::from(std::span(values).subspan(static_cast<size_t>(begin * E), static_cast<size_t>(rows * E)), {rows, E},
                          texts.device());
    };
    all_texts.push_back(is_own ? texts : part(0));
    all_images.push_back(is_own ? images : part(rows));
    if (is_own) first = B;
    B += rows;
  }
  const Tensor T = concat(all_texts, 0), I = concat(all_images, 0), fixed = factor.detach();  // (B, E)
  Tensor loss = loss_both_ways(texts, images, T, I, factor, first, options);
  int64_t begin = 0;
  for (size_t shard = 0; shard < all.size(); ++shard) {
    const int64_t rows = all_texts[shard].size(0);
    if (shard != shards.place()) {
      const Tensor other = loss_both_ways(all_texts[shard], all_images[shard], T, I, fixed, begin, options);
      loss = loss + (other - other.detach()) * (static_cast<float>(rows) / static_cast<float>(b));
    }
    begin += rows;
  }
  return loss;
}

// Contrastive: every text belongs to the image of the same number. texts, images: (B, E), logits: (B, B)
Tensor matching_loss(const Tensor& texts, const Tensor& images, const Tensor& logits, const Tensor& factor, const ForwardOptions& options) {
  const int64_t B = logits.size(0);
  check(B == logits.size(1), "clip: a loss of ", B, " texts and ", logits.size(1), " images, expected a text for every image");
  if (BatchShards* const shards = options.mode.training() ? ShardScope::newest() : nullptr)
    return loss_of_shard(texts, images, factor, *shards, options);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < B; ++i) numbers.push_back(i);
  const Tensor labels = Tensor::from(numbers, {B}, kCpu);
  return (token_loss(logits, labels, options) + token_loss(transpose(logits, 0, 1), labels, options)) * 0.5f;
}

Network make_clip(const Scope& scope, const Config& config) {
  if (config.has("heed")) config.refuse("heed", "none: it belongs into text_config or vision_config");
  const int64_t E = config.size("projection_dim", 512);
  const ClipText text = make_clip_text(scope, config.below_or_dict("text_config"), E);
  const ClipVision vision = make_clip_vision(scope, config.below_or_dict("vision_config"), E);
  const Tensor logit_scale =
      scope.get("logit_scale", Shape{}, initializer::constant(config.number("logit_scale_init_value", 2.6592f)), {.decays = false});
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const bool texts = inputs.contains("input_ids"), images = inputs.contains("pixel_values"), both = texts && images;
                check(texts || images, "clip: found neither input_ids nor pixel_values, expected at least one of them");
                if (texts) out["text_embeds"] = unit_length(text(inputs, options, out, both ? "text_model_output." : ""));
                if (images) out["image_embeds"] = unit_length(vision(inputs, options, out, both ? "vision_model_output." : ""));
                if (images && inputs.contains("text_embeds")) out["text_embeds"] = inputs.at("text_embeds");
                if (!images || !out.contains("text_embeds")) return out;
                const Tensor factor = exp(logit_scale);
                out["logits_per_text"] = matmul(out["text_embeds"], transpose(out["image_embeds"], 0, 1)) * factor;
                out["logits_per_image"] = transpose(out["logits_per_text"], 0, 1);
                if (inputs.contains("return_loss") || options.loss_only)
                  out["loss"] = matching_loss(out["text_embeds"], out["image_embeds"], out["logits_per_text"], factor, options);
                return out;
              },
          .inputs = {"input_ids", "attention_mask", "position_ids", "pixel_values", "text_embeds", "return_loss"}};
}

}  // namespace

Architectures clip_architectures() {
  return of_family({.model_type = "clip",
                    .pixels = true,
                    .tokens = true,
                    .causal = true,
                    .positions = [](const Config& config) { return clip_positions(config.below_or_dict("text_config")); },
                    .word_tables = {"text_model.embeddings.token_embedding.weight"},
                    .default_position = "learned",
                    .image_processor = "CLIP",
                    .image_keys = "vision_config",
                    .usual_patch = kClipPatch,
                    .keys = {.more = {"text_config", "vision_config", "projection_dim", "logit_scale_init_value"}},
                    .ignored = {"embeddings.position_ids"}},
                   {{"CLIPModel", ModelTask::image_text_matching, make_clip}});
}

}  // namespace heed
