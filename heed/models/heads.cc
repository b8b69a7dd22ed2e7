#include "heed/models/heads.h"

#include "heed/models/labelled_tokens.h"

namespace heed {
namespace {

// Positions outside of the N tokens do not count. positions: (B) or (B, 1) -> (B)
Tensor span_labels(const Tensor& positions, int64_t N) {
  std::vector<int64_t> out = positions.to_vector<int64_t>();
  for (int64_t& each : out) each = each >= N ? -100 : std::max<int64_t>(each, 0);
  return Tensor::from(out, {std::ssize(out)}, kCpu);
}

}  // namespace

void TokenHead::operator()(const HeadInput& in, const Tensor& labels, TensorMap& out, const std::string& name) const {
  const Tensor places = optional_input(in.inputs, kLabelPlaces);
  add_token_logits(
      out, name, decoder, in.x, labels, in.options, [&](const Tensor& x) { return states(x); }, places);
}

Head masked_tokens(const TokenHead& head) {
  return [=](const HeadInput& in, TensorMap& out) { head(in, in.labels, out); };
}

Head token_classes(const Linear& linear, float dropout) {
  return [=](const HeadInput& in, TensorMap& out) {
    out["logits"] = linear(heed::dropout(in.x, dropout, in.options.mode));
    if (in.labels.defined()) out["loss"] = token_loss(out["logits"], in.labels, in.options);
  };
}

SentencePooler pooled_by(const Pool& pool) {
  return [=](const HeadInput& in) { return pool_text(pool, in.x, optional_input(in.inputs, "attention_mask"), in.options); };
}

Head sequence_classes(const SentencePooler& pooled, const Linear& linear, float dropout, const Config& config) {
  return [=](const HeadInput& in, TensorMap& out) {
    out["logits"] = linear(heed::dropout(pooled(in), dropout, in.options.mode));
    if (in.labels.defined()) out["loss"] = classification_loss(out["logits"], in.labels, config, in.options);
  };
}

SentencePooler last_token(int64_t padding_id) {
  return [=](const HeadInput& in) {
    const int64_t B = in.x.size(0), N = in.x.size(1);
    const std::vector<int64_t> tokens = token_input(in.inputs, "input_ids").to_vector<int64_t>();
    const std::vector<std::vector<int64_t>> mask = rows_of(optional_input(in.inputs, "attention_mask"), B, N);
    std::vector<int64_t> lengths = in.options.sequences, last;
    if (lengths.empty()) lengths.assign(static_cast<size_t>(B), N);
    int64_t begin = 0;
    for (const int64_t length : lengths) {
      last.push_back(begin);
      for (int64_t i = begin; i < begin + length; ++i) {
        const bool visible = mask.empty() || mask[static_cast<size_t>(i / N)][static_cast<size_t>(i % N)] != 0;
        if (visible && tokens[static_cast<size_t>(i)] != padding_id) last.back() = i;
      }
      begin += length;
    }
    return index_select(reshape(in.x, {B * N, in.x.size(2)}), 0, Tensor::from(last, {std::ssize(last)}, in.x.device()));
  };
}

Head answer_spans(const Scope& scope, int64_t D, float dropout) {
  const Linear linear(scope / "qa_outputs", D, 2);
  return [=](const HeadInput& in, TensorMap& out) {
    const Tensor logits = linear(heed::dropout(in.x, dropout, in.options.mode));  // (B, N, 2)
    const int64_t B = logits.size(0), N = logits.size(1);
    const Tensor start = optional_input(in.inputs, "start_positions"), end = optional_input(in.inputs, "end_positions");
    const auto column = [&](int64_t i) { return reshape(slice(logits, 2, i, i + 1), {B, N}); };
    out["start_logits"] = column(0);
    out["end_logits"] = column(1);
    if (start.defined() && end.defined())
      out["loss"] = (token_loss(out["start_logits"], span_labels(start, N), in.options) +
                     token_loss(out["end_logits"], span_labels(end, N), in.options)) *
                    0.5f;
  };
}

}  // namespace heed
