// Runs the example of docs/layers.md and checks that the document shows it.
#include <gtest/gtest.h>

#include "tests/nn/plain.h"
#include "tests/structure/source.h"

// example begins
#include <heed/nn/encoder.h>
#include <heed/nn/patches.h>
#include <heed/nn/pooling.h>

using namespace heed;

// Cordonnier et al. 2020: tokens of 2 x 2 pixels, heads that attend by position only, mean pooling.
struct Network {
  Linear embed;
  std::vector<EncoderLayer> layers;
  Linear head;

  Tensor operator()(const Tensor& images, Mode mode = {}) const {  // (B, 3, 32, 32) -> (B, 10)
    Tensor tokens = embed(space_to_depth(images, 2));              // (B, 256, D)
    for (const EncoderLayer& layer : layers) tokens = layer(tokens, {}, mode);
    return head(pool_mean(tokens));
  }
};

Network make_network(const Scope& scope, int64_t layers, int64_t heads, int64_t D) {
  const auto gaussian = [=](const Scope& s) { return std::vector<ScorePositions>{gaussian_positions(s, heads, 16)}; };
  const LayerOptions options{.attention = {.width = D, .heads = heads, .content = false, .project_values = false, .positions = gaussian},
                             .feed_forward = {.hidden_width = 512, .activation = Activation::gelu},
                             .eps = 1e-12f,
                             .branch = {.dropout = 0.1f}};
  Network network{.embed = Linear(scope / "embed", 12, D), .layers = {}, .head = Linear(scope / "head", D, 10)};
  for (int64_t layer = 0; layer < layers; ++layer) network.layers.push_back(make_encoder_layer(scope / "layers" / layer, options));
  return network;
}
// example ends

namespace heed::test {
namespace {

TEST(LayersDocument, contains_the_tested_example) {
  EXPECT_NE(read_source("docs/layers.md").find(shown_example("tests/nn/example_test.cc")), std::string::npos);
}

TEST(LayersDocument, example_network_has_the_expected_size_and_gradients) {
  Params params(1);
  const Network network = make_network(Scope(params, initializer::bert()), 1, 9, 400);
  const int64_t attention = 9 * 400 * 400 + 400 + 9 * 3, feed_forward = 2 * 400 * 512 + 512 + 400, norms = 4 * 400;
  EXPECT_EQ(params.count(), 12 * 400 + 400 + attention + feed_forward + norms + 400 * 10 + 10);
  Rng rng(1);
  const Tensor logits = network(normal_input({1, 3, 32, 32}, 1), training_with(rng));
  EXPECT_EQ(logits.shape(), (Shape{1, 10}));
  backward(cross_entropy(logits, Tensor::from(std::vector<int64_t>{3}, {1}, test_device())));
  for (const Parameter& p : params.all()) EXPECT_TRUE(p.tensor.grad().defined()) << p.name;
}

}  // namespace
}  // namespace heed::test
