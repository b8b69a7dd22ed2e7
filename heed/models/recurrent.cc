// Recurrent networks, for comparison with transformers: a sentence classifier, and an encoder-decoder with attention over the states of its
// encoder. heed's own architectures: the key "cell" is lstm or gru, "attention" is additive (Bahdanau, Cho and Bengio 2015: before each
// token, from the state so far) or dot (Luong, Pham and Manning 2015: after each token, from the new state).
#include "heed/nn/recurrent.h"
#include "heed/models/architecture.h"
#include "heed/models/encoder_decoder.h"
#include "heed/models/parts.h"

namespace heed {
namespace {

struct RecurrentSizes {
  RecurrentKind kind;
  int64_t D, layers, V;
  float dropout;

  explicit RecurrentSizes(const Config& config)
      : D(config.size("hidden_size", 256)),
        layers(config.size("num_layers", 1)),
        V(config.size("vocab_size", 1000)),
        dropout(config.probability("dropout", 0.1f)) {
    const std::string cell = config.string("cell", "lstm");
    if (cell != "lstm" && cell != "gru") config.refuse("cell", "lstm or gru");
    if (D % 2 != 0) config.refuse("hidden_size", "an even number: half of it for each direction");
    kind = cell == "lstm" ? RecurrentKind::lstm : RecurrentKind::gru;
  }
};

// Embeddings of deviation 1, as in PyTorch: smaller ones leave the gates half open for many steps.
Scope recurrent_scope(const Scope& root, const Config& config) {
  Initializers initializers = initializer_from(config, "initializer_range", false);
  initializers.embedding = initializer::normal(1);
  return root.with(initializers);
}

// Layers that read a text in both directions, with half of the features each.
struct BothDirections {
  Embedding words = {};
  std::vector<std::pair<Recurrent, Recurrent>> layers = {};
  float dropout = 0;

  // -> (B, M, D)
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix) const {
    const Tensor tokens = token_input(inputs, "input_ids"), mask = optional_input(inputs, "attention_mask");
    const int64_t B = tokens.size(0);
    Tensor x = words(tokens);
    const Tensor keep = mask.defined() ? converted(mask, DType::f32).to(x.device()) : Tensor();
    if (options.hidden_states) out[prefix + "hidden_states.0"] = x;
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto& [ahead, back] = layers[i];
      x = heed::dropout(x, dropout, options.mode);
      x = concat({ahead(x, keep, ahead.start(B)).first, back(x, keep, back.start(B), true).first}, 2);
      if (options.hidden_states) out[prefix + "hidden_states." + std::to_string(i + 1)] = x;
    }
    return x;
  }
};

BothDirections make_both_directions(const Scope& scope, const RecurrentSizes& sizes) {
  BothDirections out{.words = Embedding(scope / "words", sizes.V, sizes.D), .dropout = sizes.dropout};
  for (int64_t i = 0; i < sizes.layers; ++i)
    out.layers.emplace_back(make_recurrent(scope / "layers" / i / "ahead", sizes.kind, sizes.D, sizes.D / 2),
                            make_recurrent(scope / "layers" / i / "back", sizes.kind, sizes.D, sizes.D / 2));
  return out;
}

// The mean of the visible tokens. x: (B, M, D) -> (B, D)
Tensor mean_state(const Tensor& x, const Tensor& mask) {
  if (!mask.defined()) return mean(x, {1});
  const Tensor weights = reshape(converted(mask, DType::f32).to(x.device()), {x.size(0), 1, x.size(1)});
  return reshape(matmul(weights / sum(weights, {2}, true), x), {x.size(0), x.size(2)});
}

Network make_recurrent_classifier(const Scope& root, const Config& config) {
  const Scope scope = recurrent_scope(root, config);
  const RecurrentSizes sizes(config);
  const BothDirections encoder = make_both_directions(scope / "encoder", sizes);
  const Linear head(scope / "classifier", sizes.D, config.labels());
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const Tensor x = mean_state(encoder(inputs, options, out, ""), optional_input(inputs, "attention_mask"));
                out["logits"] = head(heed::dropout(x, sizes.dropout, options.mode));
                if (const Tensor labels = optional_input(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config, options);
                return out;
              },
          .inputs = {"input_ids", "attention_mask", "labels"}};
}

struct RecurrentTranslator {
  BothDirections encoder = {};
  Embedding words = {};             // of the target
  std::vector<Linear> bridge = {};  // from the mean of the encoder's states to the first state of each layer
  std::vector<Recurrent> layers = {};
  bool is_additive = true;
  AdditiveAttention additive = {};
  Linear key = {}, join = {}, head = {};  // key: of the dot product; join: context and state -> (D)
  float dropout = 0;
  int64_t pad = 0, start = 0;

  // The state of every layer as a pair h, c, followed by keys and memory, (B, 1, M, D) each.
  DecodeState first_state(const Tensor& memory, const Tensor& mask) const {
    DecodeState state{.memory_mask = mask};
    const Tensor mean = mean_state(memory, mask);
    for (size_t i = 0; i < layers.size(); ++i) {
      const RecurrentState zero = layers[i].start(memory.size(0));
      state.memory.emplace_back(bridge[i](mean, Activation::tanh), zero.c);
    }
    const Shape by_head{memory.size(0), 1, memory.size(1), memory.size(2)};
    state.memory.emplace_back(reshape(is_additive ? additive.key(memory) : key(memory), by_head), reshape(memory, by_head));
    return state;
  }

  // x: (B, I) -> the output of the last layer (B, D)
  Tensor through_layers(Tensor x, DecodeState& state, Mode mode) const {
    for (size_t i = 0; i < layers.size(); ++i) {
      auto& [h, c] = state.memory[i];
      const RecurrentState next = layers[i].step(layers[i].input(heed::dropout(x, dropout, mode)), {h, c});
      h = next.h, c = next.c;
      x = h;
    }
    return x;
  }

  // The states that predict the token after each of n tokens. tokens: (B, n) -> states (B, n, D), and the map (B, 1, n, M) if it is wanted
  std::pair<Tensor, Tensor> read(const Tensor& tokens, DecodeState& state, Mode mode, bool wants_map = false) const {
    const int64_t B = tokens.size(0), n = tokens.size(1), D = words.weight.size(1);
    const auto& [keys, memory] = state.memory.back();
    const int64_t M = memory.size(2);
    const Tensor visible = state.memory_mask.defined() ? converted(state.memory_mask, DType::boolean).to(memory.device()) : Tensor();
    const Tensor x = words(tokens);
    Tensors outputs, contexts, maps;
    for (int64_t i = 0; i < n; ++i) {
      Tensor token = reshape(slice(x, 1, i, i + 1), {B, D});
      if (is_additive) {
        const Tensor& before = state.memory[layers.size() - 1].first;
        const auto [context, map] = additive(reshape(before, {B, 1, D}), reshape(keys, {B, M, D}), reshape(memory, {B, M, D}), visible);
        contexts.push_back(context), maps.push_back(map);
        token = concat({token, reshape(context, {B, D})}, 1);
      }
      outputs.push_back(through_layers(token, state, mode));
    }
    const Tensor h = stack(outputs, 1);
    Tensor context, map;
    if (is_additive) {
      context = concat(contexts, 1), map = concat(maps, 2);
    } else {
      std::optional<AttentionTap> tap;
      if (wants_map) tap.emplace();
      const AttentionOptions attention_options{.beta = 1.0f, .terms = mask_terms(state.memory_mask, B, n, M, false, memory.device())};
      context = reshape(attention(reshape(h, {B, 1, n, D}), keys, memory, attention_options), {B, n, D});
      if (tap) map = tap->looks().at(0).probabilities;
    }
    return {join(concat({context, h}, 2), Activation::tanh), map};
  }

  TensorMap run(const TensorMap& inputs, const ForwardOptions& options) const {
    TensorMap out;
    const Tensor memory = encoder(inputs, options, out, "encoder_"), labels = optional_input(inputs, "labels");
    DecodeState state = first_state(memory, optional_input(inputs, "attention_mask"));
    const bool from_labels = labels.defined() && !inputs.contains("decoder_input_ids");
    const Tensor tokens = from_labels ? shifted_right(labels, start, pad) : token_input(inputs, "decoder_input_ids");
    const auto [states, map] = read(tokens, state, options.mode, options.attentions);
    if (options.attentions) out["cross_attentions.0"] = map;
    out["encoder_last_hidden_state"] = memory;
    add_token_logits(out, "logits", head, heed::dropout(states, dropout, options.mode), labels, options);
    return out;
  }
};

RecurrentTranslator make_recurrent_translator(const Scope& scope, const Config& config) {
  const RecurrentSizes sizes(config);
  const std::string attention = config.string("attention", "additive");
  if (attention != "additive" && attention != "dot") config.refuse("attention", "additive or dot");
  const int64_t D = sizes.D;
  RecurrentTranslator out{.encoder = make_both_directions(scope / "encoder", sizes),
                          .words = Embedding(scope / "decoder.words", sizes.V, D),
                          .is_additive = attention == "additive",
                          .dropout = sizes.dropout,
                          .pad = config.size("pad_token_id", 0, 0),
                          .start = config.size("decoder_start_token_id", 0, 0)};
  const Scope decoder = scope / "decoder", attends = decoder / "attention";
  for (int64_t i = 0; i < sizes.layers; ++i) {
    out.bridge.emplace_back(decoder / "bridge" / i, D, D);
    out.layers.push_back(make_recurrent(decoder / "layers" / i, sizes.kind, i == 0 && out.is_additive ? 2 * D : D, D));
  }
  if (out.is_additive)
    out.additive = {.query = Linear(attends / "query", D, D, {.bias = false}),
                    .key = Linear(attends / "key", D, D),
                    .score = Linear(attends / "score", D, 1, {.bias = false})};
  else
    out.key = Linear(attends / "key", D, D, {.bias = false});
  out.join = Linear(decoder / "join", 2 * D, D);
  out.head = Linear(scope / "head", D, sizes.V);
  return out;
}

Network make_recurrent_translation(const Scope& root, const Config& config) {
  const Scope scope = recurrent_scope(root, config);
  const auto shared = std::make_shared<const RecurrentTranslator>(make_recurrent_translator(scope, config));
  const auto first = [=](const TensorMap& inputs) {
    TensorMap unused;
    return shared->first_state(shared->encoder(inputs, {}, unused, ""), optional_input(inputs, "attention_mask"));
  };
  const auto step = [=](DecodeState& state, const Tensor& tokens) {
    const Tensor states = shared->read(tokens, state, {}).first;
    return shared->head(reshape(slice(states, 1, states.size(1) - 1, states.size(1)), {states.size(0), states.size(2)}));
  };
  return {.run = [=](const TensorMap& inputs, const ForwardOptions& options) { return shared->run(inputs, options); },
          .inputs = {"input_ids", "attention_mask", "decoder_input_ids", "labels"},
          .decoder = {.start = first, .step = step, .encoder = true}};
}

Family recurrent_family(bool translates) {
  std::vector<std::string> keys{"cell", "vocab_size"};
  if (translates) keys.insert(keys.end(), {"attention", "pad_token_id", "decoder_start_token_id", "eos_token_id"});
  return {.model_type = translates ? "recurrent-translation" : "recurrent",
          .tokens = true,
          .causal = translates,
          .encoder_decoder = translates,
          .positions = [](const Config& config) { return config.size("max_position_embeddings", 512); },
          .word_tables = {"encoder.words.weight"},
          .keys = {.layers = {"num_layers"},
                   .width = {"hidden_size"},
                   .dropout = {"dropout"},
                   .positions = "max_position_embeddings",
                   .more = keys},
          .task_parts = {"classifier."}};
}

}  // namespace

Architectures recurrent_architectures() {
  Architectures all = of_family(recurrent_family(false),
                                {{"RecurrentForSequenceClassification", ModelTask::sequence_classification, make_recurrent_classifier}});
  const Architectures more =
      of_family(recurrent_family(true), {{"RecurrentForTranslation", ModelTask::seq2seq_lm, make_recurrent_translation}});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace heed
