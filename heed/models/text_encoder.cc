#include "heed/models/text_encoder.h"

#include <algorithm>

namespace heed {
namespace {

// Indices of the first token of every sequence and of the tokens with labels, padded to n with 0. labels: (B, N) or undefined; they
// become (B, n), -100 for the padding -> (B, n)
Tensor labelled_indices(Tensor& labels, int64_t B, int64_t N) {
  const std::vector<std::vector<int64_t>> rows = rows_of(labels, B, N);
  if (rows.empty()) return Tensor::zeros({B, 1}, DType::i64, kCpu);
  std::vector<std::vector<int64_t>> indices(rows.size(), {0});
  size_t n = 1;
  for (size_t b = 0; b < rows.size(); ++b) {
    for (size_t i = 1; i < rows[b].size(); ++i)
      if (rows[b][i] != -100) indices[b].push_back(static_cast<int64_t>(i));
    n = std::max(n, indices[b].size());
  }
  std::vector<int64_t> all, selected;
  for (size_t b = 0; b < rows.size(); ++b)
    for (size_t i = 0; i < n; ++i) {
      all.push_back(i < indices[b].size() ? indices[b][i] : 0);
      selected.push_back(i < indices[b].size() ? rows[b][static_cast<size_t>(all.back())] : -100);
    }
  const Shape shape{B, static_cast<int64_t>(n)};
  labels = Tensor::from(selected, shape, kCpu);
  return Tensor::from(all, shape, kCpu);
}

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
  const AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, N, causal, x.device())};
  OutputCollector collector(options);
  const Tensor indices = labels && can_skip_tokens(layers, attention, options) ? labelled_indices(*labels, B, N) : Tensor();
  x = heed::dropout(x, dropout, options.mode);
  x = apply_norm(last, run_layers(layers, x, attention, options, collector, position_ids, indices));
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
  return network;
}

}  // namespace heed
