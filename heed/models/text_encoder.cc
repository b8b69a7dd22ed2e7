#include "heed/models/text_encoder.h"

#include "heed/models/labelled_tokens.h"

namespace heed {
namespace {

// Tokens other than padding have the positions padding_id + 1, + 2, ..., padding has padding_id. tokens: (B, N) -> (B, N)
Tensor positions_after(const Tensor& tokens, int64_t padding_id, const ForwardOptions& options) {
  std::vector<int64_t> out = tokens.to_vector<int64_t>(), lengths = options.sequences;
  if (lengths.empty()) lengths.assign(static_cast<size_t>(tokens.size(0)), tokens.size(1));
  auto token = out.begin();
  for (const int64_t length : lengths) {
    int64_t position = padding_id;
    for (int64_t i = 0; i < length; ++i, ++token) *token = *token == padding_id ? padding_id : ++position;
  }
  return Tensor::from(out, tokens.shape(), kCpu);
}

}  // namespace

Tensor TextEncoder::operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, Tensor* labels) const {
  const Tensor tokens = token_input(inputs, "input_ids"), types = optional_input(inputs, "token_type_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1);
  const bool after_padding = padding_id && !inputs.contains("position_ids");
  const Tensor position_ids = after_padding ? positions_after(tokens, *padding_id, options) : position_input(inputs, options);
  Tensor x = word_embeddings(tokens);
  if (segment_embeddings.weight.defined())
    x = x + (types.defined() ? segment_embeddings(types) : slice(segment_embeddings.weight, 0, 0, 1));
  x = norm(positions(x, position_ids));
  const Tensor counts = optional_input(inputs, kTokenCounts);
  AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, N, causal, x.device())};
  if (counts.defined()) attention.terms.emplace_back(KeyLengths{counts.to(x.device())});
  OutputCollector collector(options);
  const bool skips = labels && can_skip_tokens(layers, attention, options);
  const Tensor given = optional_input(inputs, kLabelledRows), rows = given.defined() ? given : skips ? read_rows(*labels, B, N) : Tensor();
  x = heed::dropout(x, dropout, options.mode);
  x = run_layers(layers, x, attention, options, collector, position_ids, skips ? rows : Tensor());
  x = apply_norm(last, given.defined() && !skips ? gather_tokens(x, given) : x);
  collector.last_state(x);
  collector.add_outputs(out, std::ssize(layers));
  return x;
}

Network text_network(const TextEncoder& encoder, Reads reads, const Head& head, const std::vector<std::string>& head_inputs) {
  Network network{.run =
                      [=](const TensorMap& inputs, const ForwardOptions& options) {
                        TensorMap out;
                        Tensor labels = optional_input(inputs, "labels"), none;
                        const bool some = reads == Reads::first || (reads == Reads::labelled && labels.defined());
                        const Tensor x = encoder(inputs, options, out, !some ? nullptr : reads == Reads::first ? &none : &labels);
                        head({inputs, options, x, labels}, out);
                        return out;
                      },
                  .inputs = {"input_ids", "attention_mask", "position_ids"},
                  .sequences = true};
  if (encoder.segment_embeddings.weight.defined()) network.inputs.emplace_back("token_type_ids");
  network.inputs.insert(network.inputs.end(), head_inputs.begin(), head_inputs.end());
  if (reads == Reads::labelled) network.inputs.insert(network.inputs.end(), {kLabelledRows, kLabelPlaces, kTokenCounts});
  return network;
}

}  // namespace heed
