// An image encoder and a text decoder that attends to its patches, as for captions (Vinyals et al. 2015 with an LSTM; Li et al. 2021):
// `transformers` calls it VisionEncoderDecoderModel. Here with a ViT and a BERT decoder with cross-attention.
#include "heed/models/architecture.h"
#include "heed/models/bert.h"
#include "heed/models/encoder_decoder.h"
#include "heed/models/vision.h"

namespace heed {
namespace {

constexpr LayerNames kCaptionLayer{"attention",      "attention.output.LayerNorm",     "", "output.LayerNorm",
                                   "crossattention", "crossattention.output.LayerNorm"};

struct Captioner {
  Vision vision;
  Linear bridge = {};  // (D, D'), if the widths differ
  Embedding words, segments;
  AddedPositions positions;
  Norm norm;
  std::vector<DecoderLayer> layers = {};
  TokenHead head;
  float dropout = 0;
  int64_t pad = 0, start = 0;  // tokens

  // -> (B, M, D). out: gets states and maps, and the states before the bridge
  Tensor encode(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out) const {
    out["encoder_last_hidden_state"] = vision(inputs, options, out, false, "encoder_");
    const Tensor& x = out["encoder_last_hidden_state"];
    return bridge.defined() ? bridge(x) : x;
  }
  // (B, N) -> (B, N, D)
  Tensor embed(const Tensor& tokens, Mode mode, int64_t first = 0) const {
    const Tensor x = words(tokens) + slice(segments.weight, 0, 0, 1);
    return heed::dropout(norm(positions(x, {}, first)), dropout, mode);
  }
};

TensorMap run_captioner(const Captioner& model, const TensorMap& inputs, const ForwardOptions& options) {
  TensorMap out;
  const Tensor memory = model.encode(inputs, options, out), labels = optional_input(inputs, "labels");
  const bool from_labels = labels.defined() && !inputs.contains("decoder_input_ids");
  const Tensor tokens = from_labels ? shifted_right(labels, model.start, model.pad) : token_input(inputs, "decoder_input_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1);
  const DecoderTerms terms{.self = {.terms = mask_terms(optional_input(inputs, "decoder_attention_mask"), B, N, N, true, memory.device())},
                           .causal = false};
  OutputCollector collector(options);
  Tensor x = model.embed(tokens, options.mode);
  collector.state(x);
  x = in_precision(x, options.precision);
  const Tensor states = in_precision(memory, options.precision);
  for (const DecoderLayer& layer : model.layers) {
    x = layer(x, states, terms, options.mode);
    collector.state(x);
  }
  x = in_precision(x, DType::f32);
  collector.add_outputs(out, std::ssize(model.layers), "decoder_", true);
  model.head({inputs, options, x, labels}, labels, out);
  return out;
}

Network captioner_network(Captioner captioner) {
  const auto model = std::make_shared<const Captioner>(std::move(captioner));
  return {.run = [=](const TensorMap& inputs, const ForwardOptions& options) { return run_captioner(*model, inputs, options); },
          .inputs = {"pixel_values", "decoder_input_ids", "decoder_attention_mask", "labels"},
          .decoder = {.start =
                          [=](const TensorMap& inputs) {
                            TensorMap unused, image = inputs;
                            image["pixel_values"] = required_input(inputs, "pixel_values").to(model->words.weight.device());
                            const Tensor memory = model->encode(image, {}, unused);
                            DecodeState state{.past = std::vector<KeyValueCache>(model->layers.size())};
                            for (const DecoderLayer& layer : model->layers)
                              state.memory.push_back(layer.cross_attention.keys_values(memory));
                            return state;
                          },
                      .step =
                          [=](DecodeState& state, const Tensor& tokens) {
                            const int64_t B = tokens.size(0), n = tokens.size(1);
                            Tensor x = model->embed(tokens, {}, state.length());
                            for (size_t i = 0; i < model->layers.size(); ++i)
                              x = model->layers[i].step(x, state.memory[i], {}, {}, {.cache = &state.past[i]});
                            const Tensor last = reshape(slice(x, 1, n - 1, n), {B, x.size(2)});
                            return model->head.decoder(model->head.states(last));
                          },
                      .encoder = true}};
}

Network make_captioner(const Scope& root, const Config& config) {
  const Config images = config.below("encoder"), text = config.below("decoder");
  if (images.string("model_type", "vit") != "vit") images.refuse("model_type", "vit");
  if (text.string("model_type", "bert") != "bert") text.refuse("model_type", "bert");
  text.only("add_cross_attention", true);
  text.only("is_decoder", true);
  text.only("position_embedding_type", "absolute");
  const Scope encoder = root.with(initializer_from(images, "initializer_range", true)) / "encoder",
              decoder = root.with(initializer_from(text, "initializer_range", true)) / "decoder", bert = decoder / "bert",
              embeddings = bert / "embeddings";
  const LayerOptions options = bert_layer_options(text);
  const int64_t D = options.attention.width, tokens = text.size("max_position_embeddings", 512),
                layers = text.size("num_hidden_layers", 12, 0);
  const int64_t V = text.size("vocab_size", 30522);
  const bool shared = tied(decoder, text, true, "decoder.cls.predictions.decoder.weight", "decoder.bert.embeddings.word_embeddings.weight");
  const Embedding words(embeddings / "word_embeddings", V, D);
  Captioner model{.vision = make_vit(encoder, images, false),
                  .words = words,
                  .segments = Embedding(embeddings / "token_type_embeddings", text.size("type_vocab_size", 2), D),
                  .positions = AddedPositions{LearnedPositions(embeddings / "position_embeddings", tokens, D).weight},
                  .norm = Norm(embeddings / "LayerNorm", D, options.eps),
                  .head = bert_token_head(decoder, text, words, shared),
                  .dropout = options.branch.dropout,
                  .pad = config.size("pad_token_id", text.size("pad_token_id", 0, 0), 0),
                  .start = config.size("decoder_start_token_id", text.size("bos_token_id", 0, 0), 0)};
  const int64_t wide = images.size("hidden_size", 768);
  // Not used here, but other programs expect to find it in a checkpoint that had it.
  if (encoder.provides("pooler.dense.weight")) Linear(encoder / "pooler.dense", wide, images.size("pooler_output_size", wide));
  if (wide != D) model.bridge = Linear(root.with(initializer_from(text, "initializer_range", true)) / "enc_to_dec_proj", wide, D);
  for (int64_t i = 0; i < layers; ++i) model.layers.push_back(make_decoder_layer(bert / "encoder.layer" / i, options, kCaptionLayer));
  return captioner_network(std::move(model));
}

}  // namespace

Architectures vision_encoder_decoder_architectures() {
  return of_family({.model_type = "vision-encoder-decoder",
                    .pixels = true,
                    .causal = true,
                    .encoder_decoder = true,
                    .positions = [](const Config& config) { return config.below("decoder").size("max_position_embeddings", 512); },
                    .default_position = "learned",
                    .image_keys = "encoder",
                    .keys = {.more = {"encoder", "decoder", "pad_token_id", "decoder_start_token_id", "eos_token_id"}},
                    .ignored = {"embeddings.position_ids"}},
                   {{"VisionEncoderDecoderModel", ModelTask::image_captioning, make_captioner}});
}

}  // namespace heed
