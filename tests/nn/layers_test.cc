// Feed-forward, encoder and decoder layers against references in double; dropout and stochastic depth.
#include <gtest/gtest.h>

#include "heed/nn/decoder.h"
#include "heed/nn/encoder.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

Doubles feed_forward(const NamedDoubles& p, const std::string& name, const Doubles& x, const std::function<double(double)>& activation) {
  Doubles middle = plain::linear(p, name + ".up", x);
  if (p.contains(name + ".gate.weight")) {
    const Doubles gate = plain::map(plain::linear(p, name + ".gate", x), activation);
    for (int64_t i = 0; i < middle.size(); ++i) middle[i] *= gate[i];
  } else {
    middle = plain::map(middle, activation);
  }
  return plain::linear(p, name + ".down", middle);
}

TEST(FeedForward, matches_the_reference) {
  struct Kind {
    Activation activation;
    std::function<double(double)> formula;
  };
  for (const Kind& kind : std::vector<Kind>{{Activation::relu, plain::relu},
                                            {Activation::gelu, plain::gelu},
                                            {Activation::gelu_tanh, gelu_tanh},
                                            {Activation::silu, plain::silu}})
    for (bool gated : {false, true}) {
      Params params(1);
      const FeedForward layer =
          make_feed_forward(Scope(params, initializer::bert()) / "ff",
                            {.width = 3, .hidden_width = 7, .activation = kind.activation, .gated = gated, .bias = !gated});
      randomize(params);
      check_module(gated ? "gated" : "plain",
                   {.params = params,
                    .inputs = {normal_input({2, 3}, 1)},
                    .run = [&](const Tensors& in) { return layer(in[0]); },
                    .reference = [&](const NamedDoubles& p, const Many& in) { return feed_forward(p, "ff", in[0], kind.formula); }});
    }
}

TEST(FeedForward, activations_are_found_by_name) {
  EXPECT_EQ(activation_named("gelu"), Activation::gelu);
  EXPECT_EQ(activation_named("gelu_new"), Activation::gelu_tanh);
  EXPECT_EQ(activation_named("swish"), Activation::silu);
  expect_error([] { activation_named("rely"); }, "activation: 'rely' is not known; did you mean 'relu'?");
  Params params(1);
  expect_error([&] { make_feed_forward(Scope(params, initializer::bert()), {}); }, "feed_forward: widths 0 and 0");
  EXPECT_EQ(make_feed_forward(Scope(params, initializer::bert()), {.width = 2}).up.outputs(), 8);
}

LayerOptions layer_options(NormPlace place, NormKind norm) {
  return {.attention = {.width = 4, .heads = 2},
          .feed_forward = {.hidden_width = 5, .activation = Activation::gelu},
          .place = place,
          .norm = norm,
          .eps = 1e-3f};
}

// One residual branch. after: post-norm
Doubles residual(const NamedDoubles& p, const std::string& norm, const Doubles& x, bool after,
                 const std::function<Doubles(const Doubles&)>& branch) {
  if (after) return plain::norm(p, norm, plain::add(x, branch(x)), 1e-3f);
  return plain::add(x, branch(plain::norm(p, norm, x, 1e-3f)));
}

Doubles encoder_layer(const NamedDoubles& p, const std::string& name, const Doubles& x, bool after) {
  const Doubles y = residual(p, name + ".attention_norm", x, after,
                             [&](const Doubles& z) { return plain::multi_head(p, name + ".attention", z, z, 2, 2); });
  return residual(p, name + ".feed_forward_norm", y, after,
                  [&](const Doubles& z) { return feed_forward(p, name + ".feed_forward", z, plain::gelu); });
}

Doubles decoder_layer(const NamedDoubles& p, const std::string& name, const Doubles& x, const Doubles& memory, bool after) {
  const Doubles y = residual(p, name + ".self_norm", x, after,
                             [&](const Doubles& z) { return plain::multi_head(p, name + ".self_attention", z, z, 2, 2, plain::causal); });
  const Doubles w = residual(p, name + ".cross_norm", y, after,
                             [&](const Doubles& z) { return plain::multi_head(p, name + ".cross_attention", z, memory, 2, 2); });
  return residual(p, name + ".feed_forward_norm", w, after,
                  [&](const Doubles& z) { return feed_forward(p, name + ".feed_forward", z, plain::gelu); });
}

std::vector<EncoderLayer> encoder_layers(const Scope& scope, int64_t layers, const LayerOptions& options) {
  std::vector<EncoderLayer> out;
  for (int64_t layer = 0; layer < layers; ++layer)
    out.push_back(make_encoder_layer(scope / "layers" / layer, options_of_layer(options, layer, layers)));
  return out;
}

Tensor run(const std::vector<EncoderLayer>& layers, Tensor x, Mode mode = {}) {
  for (const EncoderLayer& layer : layers) x = layer(x, {}, mode);
  return x;
}

TEST(EncoderLayer, matches_the_reference) {
  for (NormPlace place : {NormPlace::before, NormPlace::after})
    for (NormKind norm : {NormKind::layer, NormKind::root_mean_square}) {
      const bool after = place == NormPlace::after;
      Params params(1);
      const auto layers = encoder_layers(Scope(params, initializer::bert()) / "encoder", 2, layer_options(place, norm));
      randomize(params, 0.7f);
      check_module(after ? "post-norm" : "pre-norm", {.params = params,
                                                      .inputs = {normal_input({2, 3, 4}, 1)},
                                                      .run = [&](const Tensors& in) { return run(layers, in[0]); },
                                                      .reference =
                                                          [&](const NamedDoubles& p, const Many& in) {
                                                            return encoder_layer(p, "encoder.layers.1",
                                                                                 encoder_layer(p, "encoder.layers.0", in[0], after), after);
                                                          },
                                                      .tolerance = 2e-5,
                                                      .gradient_tolerance = 3e-4});
    }
}

TEST(EncoderLayer, deferred_residual_additions_give_the_same_bits) {
  for (NormPlace place : {NormPlace::before, NormPlace::after})
    for (NormKind norm : {NormKind::layer, NormKind::root_mean_square}) {
      Params params(1);
      const auto layers = encoder_layers(Scope(params, initializer::bert()) / "encoder", 3, layer_options(place, norm));
      randomize(params, 0.7f);
      const Tensor seed = normal_input({2, 3, 4}, 2);
      const auto numbers = [&](bool extend) {
        for (const Parameter& p : params.all()) p.tensor.zero_grad();
        const Tensor x = normal_input({2, 3, 4}, 1).require_grad();
        Residual state{x};
        for (const EncoderLayer& layer : layers) state = layer.extend(extend ? state : Residual{state.total()}, {}, {}, {});
        const Tensor y = state.total();
        backward(y, seed);
        std::vector<std::vector<float>> all{y.to_vector<float>(), x.grad().to_vector<float>()};
        for (const Parameter& p : params.all()) all.push_back(p.tensor.grad().to_vector<float>());
        return all;
      };
      const auto extended = numbers(true), single = numbers(false);
      const std::string what = "place " + std::to_string(static_cast<int>(place)) + ", norm " + std::to_string(static_cast<int>(norm));
      if (test_device() == kCpu) {
        EXPECT_EQ(extended, single) << what;
      }
      for (size_t i = 0; i < single.size(); ++i)  // a GPU adds the gradients in another order
        for (size_t at = 0; at < single[i].size(); ++at)
          EXPECT_NEAR(extended[i][at], single[i][at], 1e-5 * (1 + std::abs(single[i][at]))) << what;
    }
}

TEST(DecoderLayer, matches_the_reference) {
  for (NormPlace place : {NormPlace::before, NormPlace::after}) {
    const bool after = place == NormPlace::after;
    Params params(1);
    LayerOptions options = layer_options(place, NormKind::layer);
    options.attention.memory_width = 3;
    const DecoderLayer layer = make_decoder_layer(Scope(params, initializer::bert()) / "decoder", options);
    randomize(params, 0.7f);
    check_module(after ? "post-norm" : "pre-norm",
                 {.params = params,
                  .inputs = {normal_input({2, 3, 4}, 1), normal_input({2, 5, 3}, 2)},
                  .run = [&](const Tensors& in) { return layer(in[0], in[1]); },
                  .reference = [&](const NamedDoubles& p, const Many& in) { return decoder_layer(p, "decoder", in[0], in[1], after); },
                  .tolerance = 2e-5,
                  .gradient_tolerance = 3e-4});
  }
}

TEST(DecoderLayer, is_causal) {
  Params params(1);
  const Scope scope(params, initializer::original(8));
  const LayerOptions options{.attention = {.width = 8, .heads = 2}};
  const DecoderLayer first = make_decoder_layer(scope / 0, options), second = make_decoder_layer(scope / 1, options);
  const auto decoder = [&](const Tensor& tokens, const Tensor& memory, const DecoderTerms& terms = {}) {
    return second(first(tokens, memory, terms), memory, terms);
  };
  const Tensor x = normal_input({1, 6, 8}, 1), memory = normal_input({1, 4, 8}, 2);
  const Tensor other = concat({slice(x, 1, 0, 4), normal_input({1, 2, 8}, 3)}, 1);
  expect_near(slice(decoder(x, memory), 1, 0, 4), slice(decoder(other, memory), 1, 0, 4), 0);
  // Padding of the memory is masked, too.
  const DecoderTerms lengths{.cross = {.terms = {KeyLengths{Tensor::from(std::vector<int64_t>{3}, {1}, test_device())}}}};
  expect_near(decoder(x, memory, lengths), decoder(x, slice(memory, 1, 0, 3)), 1e-5);
}

TEST(EncoderLayer, shares_positions_and_has_the_expected_parameter_count) {
  Params params(1);  // GPT-2's layer: 12 D^2 + 13 D
  make_encoder_layer(Scope(params, initializer::gpt2(12)),
                     {.attention = {.width = 32, .heads = 4, .fused = true}, .place = NormPlace::before});
  EXPECT_EQ(params.count(), 12 * 32 * 32 + 13 * 32);
  Params shared(1);
  const Scope root(shared, initializer::bert());
  LayerOptions options{.attention = {.width = 8, .heads = 2}};
  options.attention.positions = [&](const Scope&) { return std::vector<ScorePositions>{relative_positions(root / "positions", 2, 3)}; };
  backward(sum(run(encoder_layers(root, 2, options), normal_input({1, 5, 8}, 1))));
  int64_t tables = 0;
  for (const Parameter& p : shared.all()) tables += p.name == "positions.table";
  EXPECT_EQ(tables, 1);
}

TEST(EncoderLayer, residual_weights_are_initialized_smaller_for_gpt2) {
  const auto deviation = [](const Tensor& x) { return std::sqrt(variance(x).item()); };
  Params params(1);
  const EncoderLayer layer = make_encoder_layer(Scope(params, initializer::gpt2(8)), {.attention = {.width = 64, .heads = 4}});
  EXPECT_NEAR(deviation(layer.attention.query.weight), 0.02, 0.001);
  EXPECT_NEAR(deviation(layer.feed_forward.up.weight), 0.02, 0.001);
  EXPECT_NEAR(deviation(layer.attention.output.weight), 0.005, 0.0003);
  EXPECT_NEAR(deviation(layer.feed_forward.down.weight), 0.005, 0.0003);
}

TEST(EncoderLayer, round_trips_through_a_file) {
  const Folder folder;
  const LayerOptions options{.attention = {.width = 8, .heads = 2}, .place = NormPlace::before};
  const Tensor x = normal_input({2, 3, 8}, 1);
  Params params(1);
  const auto saved = encoder_layers(Scope(params, initializer::bert()) / "encoder", 2, options);
  randomize(params);
  write_safetensors(folder / "model.safetensors", params.stored());
  Params loaded(folder / "model.safetensors", 2);
  const auto back = encoder_layers(Scope(loaded, initializer::bert()) / "encoder", 2, options);
  loaded.finish();
  EXPECT_EQ(run(back, x).to_vector<float>(), run(saved, x).to_vector<float>());
  backward(sum(run(back, x) * x));
  for (const Parameter& p : loaded.all()) EXPECT_TRUE(p.tensor.grad().defined()) << p.name;
}

TEST(Mode, dropout_applies_only_in_training) {
  Params params(1);
  const auto layers =
      encoder_layers(Scope(params, initializer::original(8)), 2,
                     {.attention = {.width = 8, .heads = 2}, .feed_forward = {.dropout = 0.2f}, .branch = {.dropout = 0.3f}});
  const Tensor x = normal_input({2, 5, 8}, 1);
  const auto train = [&](uint64_t seed) {
    Rng rng(seed);
    return run(layers, x, training_with(rng)).to_vector<float>();
  };
  EXPECT_EQ(run(layers, x).to_vector<float>(), run(layers, x).to_vector<float>());
  EXPECT_EQ(train(1), train(1));
  EXPECT_NE(train(1), train(2));
  EXPECT_NE(train(1), run(layers, x).to_vector<float>());
}

TEST(StochasticDepth, drops_items_and_keeps_the_mean) {
  Rng rng(1);
  const Tensor x = Tensor::ones({4000, 2, 3}, test_device());
  const std::vector<float> y = stochastic_depth(x, 0.25f, training_with(rng)).to_vector<float>();
  double total = 0;
  for (size_t item = 0; item < 4000; ++item) {
    EXPECT_TRUE(y[item * 6] == 0 || y[item * 6] == 1 / 0.75f);
    for (size_t i = 1; i < 6; ++i) ASSERT_EQ(y[item * 6 + i], y[item * 6]);
    total += y[item * 6];
  }
  EXPECT_NEAR(total / 4000, 1, 0.03);
  EXPECT_TRUE(stochastic_depth(x, 0.25f, {}).shares_data_with(x));
}

TEST(StochasticDepth, dropped_items_skip_the_branch_forward_and_backward) {
  Params params(1);
  EncoderLayer layer =
      make_encoder_layer(Scope(params, initializer::bert()), {.attention = {.width = 4, .heads = 2}, .place = NormPlace::before});
  layer.branch.stochastic_depth = 0.999999f;
  Rng rng(1);
  const Tensor x = normal_input({2, 3, 4}, 1).require_grad(), y = layer(x, {}, training_with(rng));
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
  backward(sum(y));
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(24, 1));
  EXPECT_FLOAT_EQ(stochastic_depth_of(0, 4, 0.2f), 0.05f);
  EXPECT_FLOAT_EQ(stochastic_depth_of(3, 4, 0.2f), 0.2f);
  expect_error([] { stochastic_depth_of(4, 4, 0.2f); }, "stochastic_depth: layer 4 of 4");
}

}  // namespace
}  // namespace heed::test
