#include "heed/models/causal.h"

namespace heed {
namespace {

Named run(const CausalModel& model, const Named& inputs, const Ask& ask) {
  const Tensor tokens = tokens_in(inputs, "input_ids"), types = given(inputs, "token_type_ids"), places = given(inputs, "position_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1);
  Tensor x = model.words(tokens);
  if (types.defined()) x = x + model.words(types);
  x = model.positions(x, places);
  const AttentionOptions options{.terms = mask_terms(given(inputs, "attention_mask"), B, N, N, true)};
  Named out;
  Witness witness(ask);
  x = run_layers(model.layers, dropout(x, model.dropout, ask.mode), options, ask, witness, places);
  x = model.norm(x);
  witness.last_state(x);
  witness.tell(out, std::ssize(model.layers));
  if (!model.head.defined()) {
    out["last_hidden_state"] = x;
    return out;
  }
  tell_words(out, "logits", model.head, x, labels_of_next(given(inputs, "labels")), ask);
  return out;
}

// (B, n) -> (B, V)
Tensor step(const CausalModel& model, Writing& texts, const Tensor& tokens) {
  const int64_t B = tokens.size(0), n = tokens.size(1);
  NextTokens next = next_tokens(texts, B, n);
  next.options.terms.insert(next.options.terms.begin(), Causal{});
  Tensor x = model.words(tokens);
  x = model.positions(x, next.positions, texts.length());
  for (size_t i = 0; i < model.layers.size(); ++i) x = model.layers[i](x, next.options, {}, {&texts.past[i], next.positions});
  const Tensor last = reshape(slice(x, 1, n - 1, n), {B, x.size(2)});
  return model.head(model.norm(last));
}

}  // namespace

Network causal_network(const CausalModel& model) {
  Network out{.run = [=](const Named& inputs, const Ask& ask) { return run(model, inputs, ask); },
              .inputs = {"input_ids", "attention_mask", "position_ids"}};
  if (model.positions.has_table()) out.inputs.emplace_back("token_type_ids");
  if (!model.head.defined()) return out;
  out.inputs.emplace_back("labels");
  out.decoder.start = [layers = model.layers.size()](const Named& inputs) {
    const Tensor tokens = tokens_in(inputs, "input_ids");
    return Writing{.past = std::vector<KeyValueCache>(layers),
                   .seen = rows_of(given(inputs, "attention_mask"), tokens.size(0), tokens.size(1))};
  };
  out.decoder.step = [=](Writing& texts, const Tensor& tokens) { return step(model, texts, tokens); };
  return out;
}

}  // namespace heed
