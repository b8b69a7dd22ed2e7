#include "heed/models/causal.h"

#include "heed/models/token_steps.h"

namespace heed {
namespace {

TensorMap run(const CausalModel& model, const TensorMap& inputs, const ForwardOptions& options) {
  const Tensor tokens = token_input(inputs, "input_ids"), types = optional_input(inputs, "token_type_ids"),
               positions = position_input(inputs, options);
  const int64_t B = tokens.size(0), N = tokens.size(1);
  Tensor x = model.word_embeddings(tokens);
  if (types.defined()) x = x + model.word_embeddings(types);
  x = model.positions(x, positions);
  const AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, N, true, x.device())};
  TensorMap out;
  OutputCollector collector(options);
  x = run_layers(model.layers, dropout(x, model.dropout, options.mode), attention, options, collector, positions);
  x = model.norm(x);
  collector.last_state(x);
  collector.add_outputs(out, std::ssize(model.layers));
  const Tensor labels = optional_input(inputs, "labels");
  if (model.head.defined())
    add_token_logits(out, "logits", model.head, x, shift_labels(labels), options);
  else if (model.classifier)
    model.classifier({inputs, options, x, labels}, out);
  else
    out["last_hidden_state"] = x;
  return out;
}

// (B, n) -> (B, V)
Tensor step(const CausalModel& model, DecodeState& state, const Tensor& tokens) {
  const int64_t B = tokens.size(0), n = tokens.size(1);
  NextTokens next = next_tokens(state, B, n, model.word_embeddings.weight.device());
  next.options.terms.insert(next.options.terms.begin(), Causal{});
  Tensor x = model.word_embeddings(tokens);
  x = model.positions(x, next.positions, state.length());
  for (size_t i = 0; i < model.layers.size(); ++i) x = model.layers[i](x, next.options, {}, {&state.past[i], next.positions});
  const Tensor last = reshape(slice(x, 1, n - 1, n), {B, x.size(2)});
  return model.head(model.norm(last));
}

// -> (sequences, V)
Tensor step_together(const CausalModel& model, std::span<const SequenceStep> steps) {
  std::vector<int64_t> tokens, positions, last;
  for (const SequenceStep& each : steps) {
    const int64_t n = std::ssize(each.tokens), before = each.state->length();
    check(n > 0 && each.state->mask.empty(), "model: a step of ", n, " tokens, expected one or more, and no mask");
    tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
    for (int64_t i = 0; i < n; ++i) positions.push_back(before + i);
    last.push_back(std::ssize(tokens) - 1);
  }
  const Shape shape{1, std::ssize(tokens)};
  const Tensor where = Tensor::from(positions, shape, kCpu);
  Tensor x = model.positions(model.word_embeddings(Tensor::from(tokens, shape, kCpu)), where);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    AttentionContext context{.positions = where};
    for (const SequenceStep& each : steps) context.sequences.push_back({std::ssize(each.tokens), &each.state->past[i]});
    x = model.layers[i](x, {.terms = {Causal{}}}, {}, context);
  }
  const Tensor states = reshape(x, {x.size(1), x.size(2)});
  return model.head(model.norm(index_select(states, 0, Tensor::from(last, {std::ssize(last)}, x.device()))));
}

}  // namespace

void add_head(CausalModel& model, CausalHead head, const Scope& scope, const Config& config, bool shared) {
  if (head == CausalHead::language) model.head = language_head(scope, model.word_embeddings, shared);
  if (head != CausalHead::classifier) return;
  const Linear score(scope / "score", model.word_embeddings.weight.size(1), config.labels(), {.bias = false});
  model.classifier = sequence_classes(last_token(config.size("pad_token_id", -1, -1)), score, 0, config);
}

Network causal_network(const CausalModel& model) {
  Network out{.run = [=](const TensorMap& inputs, const ForwardOptions& options) { return run(model, inputs, options); },
              .inputs = {"input_ids", "attention_mask", "position_ids"},
              .sequences = true};
  if (model.positions.has_table()) out.inputs.emplace_back("token_type_ids");
  if (model.head.defined() || model.classifier) out.inputs.emplace_back("labels");
  if (!model.head.defined()) return out;
  out.decoder.start = [layers = model.layers.size()](const TensorMap& inputs) {
    const Tensor tokens = token_input(inputs, "input_ids");
    return DecodeState{.past = std::vector<KeyValueCache>(layers),
                       .mask = rows_of(optional_input(inputs, "attention_mask"), tokens.size(0), tokens.size(1))};
  };
  out.decoder.step = [=](DecodeState& state, const Tensor& tokens) { return step(model, state, tokens); };
  out.decoder.on_device = [=](const DecodeState& state, const Tensor& logits, const TokenStepsOptions& options) {
    return token_steps(model, state, logits, options);
  };
  out.decoder.step_together = [=](std::span<const SequenceStep> steps) { return step_together(model, steps); };
  return out;
}

}  // namespace heed
