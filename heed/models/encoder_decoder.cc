#include "heed/models/encoder_decoder.h"

namespace heed {

Tensor shifted_right(const Tensor& labels, int64_t start, int64_t pad) {
  check(labels.rank() == 2, "model: labels of shape ", labels.shape(), ", expected (B, N)");
  std::vector<int64_t> out;
  for (const std::vector<int64_t>& row : rows_of(labels, labels.size(0), labels.size(1))) {
    out.push_back(start);
    for (size_t i = 0; i + 1 < row.size(); ++i) out.push_back(row[i] == -100 ? pad : row[i]);
  }
  return Tensor::from(out, labels.shape(), kCpu);
}

Tensor EncoderDecoder::encode(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix) const {
  const Tensor tokens = token_input(inputs, "input_ids");
  const int64_t B = tokens.size(0), M = tokens.size(1);
  const AttentionOptions attention{
      .terms = mask_terms(optional_input(inputs, "attention_mask"), B, M, M, false, source.word_embeddings.weight.device())};
  OutputCollector collector(options);
  const Tensor x = source.finish(run_layers(encoder, source(tokens, options.mode), attention, options, collector), options.mode);
  collector.last_state(x);
  collector.add_outputs(out, std::ssize(encoder), prefix);
  return x;
}

TensorMap EncoderDecoder::run(const TensorMap& inputs, const ForwardOptions& options) const {
  TensorMap out;
  const Tensor memory = encode(inputs, options, out), labels = optional_input(inputs, "labels");
  const bool from_labels = labels.defined() && !inputs.contains("decoder_input_ids");
  const Tensor tokens = from_labels ? shifted_right(labels, start, pad) : token_input(inputs, "decoder_input_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1), M = memory.size(1);
  DecoderTerms terms{.self = {.terms = mask_terms(optional_input(inputs, "decoder_attention_mask"), B, N, N, true, memory.device())},
                     .cross = {.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, M, false, memory.device())},
                     .causal = false};
  OutputCollector collector(options);
  Tensor x = target(tokens, options.mode);
  collector.state(x);
  x = in_precision(x, options.precision);
  const Tensor states = in_precision(memory, options.precision);
  for (const DecoderLayer& layer : decoder) {
    x = layer(x, states, terms, options.mode);
    collector.state(x);
  }
  x = target.finish(in_precision(x, DType::f32), options.mode);
  collector.last_state(x);
  collector.add_outputs(out, std::ssize(decoder), "decoder_", true);
  out["encoder_last_hidden_state"] = memory;
  add_token_logits(out, "logits", head, head_scale == 1 ? x : x * head_scale, labels, options);
  return out;
}

DecodeState EncoderDecoder::start_decoding(const TensorMap& inputs) const {
  TensorMap unused;
  const Tensor memory = encode(inputs, {}, unused);
  DecodeState state{.past = std::vector<KeyValueCache>(decoder.size()), .memory_mask = optional_input(inputs, "attention_mask")};
  for (const DecoderLayer& layer : decoder) state.memory.push_back(layer.cross_attention.keys_values(memory));
  return state;
}

Tensor EncoderDecoder::step(DecodeState& state, const Tensor& tokens) const {
  const int64_t B = tokens.size(0), n = tokens.size(1), M = state.memory.empty() ? 0 : state.memory[0].first.size(2);
  const DecoderTerms terms{.cross = {.terms = mask_terms(state.memory_mask, B, n, M, false, head.device())}};
  Tensor x = target(tokens, {}, state.length());
  for (size_t i = 0; i < decoder.size(); ++i) x = decoder[i].step(x, state.memory[i], terms, {}, {.cache = &state.past[i]});
  const Tensor last = target.finish(reshape(slice(x, 1, n - 1, n), {B, x.size(2)}), {});
  return head(head_scale == 1 ? last : last * head_scale);
}

Network encoder_decoder_network(EncoderDecoder model) {
  const auto shared = std::make_shared<const EncoderDecoder>(std::move(model));
  return {.run = [=](const TensorMap& inputs, const ForwardOptions& options) { return shared->run(inputs, options); },
          .inputs = {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask", "labels"},
          .decoder = {.start = [=](const TensorMap& inputs) { return shared->start_decoding(inputs); },
                      .step = [=](DecodeState& state, const Tensor& tokens) { return shared->step(state, tokens); },
                      .encoder = true}};
}

}  // namespace heed
