// Activations by name, and fused with linear layers.
#include <gtest/gtest.h>

#include "heed/nn/feed_forward.h"
#include "tests/expect_error.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

// For every activation of the list, a layer with it equals the layer followed by the function, in values and gradients.
TEST(Activations, fused_with_linear_layers_match_separate_ops) {
  Rng rng(5);
  const Tensor x = random_normal({7, 6}, 0, 2, rng, kCpu), w = random_normal({9, 6}, 0, 1, rng, kCpu),
               b = random_normal({9}, 0, 1, rng, kCpu), g = random_normal({7, 9}, 0, 1, rng, kCpu);
  const auto compare = [&](Activation activation, Tensor (*function)(const Tensor&)) {
    Tensor one = w.detach(), two = contiguous(w * 1.0f).detach();
    one.require_grad(), two.require_grad();
    const Tensor fused = linear(x, one, b, activation), apart = function(linear(x, two, b));
    expect_near(fused, apart, 1e-5f);
    backward(fused, g);
    backward(apart, g);
    expect_near(one.grad(), two.grad(), 1e-4f);
  };
#define HEED_COMPARE(Formula, function) compare(Activation::function, &heed::function);
  HEED_ACTIVATIONS(HEED_COMPARE)
#undef HEED_COMPARE
}

// The names that `transformers` has, except laplace and those with parameters of their own.
TEST(Activations, are_found_by_the_names_of_config_json) {
  for (const char* name : {"gelu",
                           "gelu_10",
                           "gelu_fast",
                           "gelu_new",
                           "gelu_python",
                           "gelu_pytorch_tanh",
                           "gelu_python_tanh",
                           "gelu_accurate",
                           "hardswish",
                           "leaky_relu",
                           "linear",
                           "mish",
                           "quick_gelu",
                           "relu",
                           "relu2",
                           "relu6",
                           "sigmoid",
                           "silu",
                           "sqrtsoftplus",
                           "swish",
                           "tanh"})
    EXPECT_NO_THROW(activation_named(name)) << name;
  EXPECT_EQ(activation_named("gelu_new"), Activation::gelu_tanh);
  EXPECT_EQ(activation_named("swish"), Activation::silu);
  EXPECT_EQ(activation_named("linear"), Activation::none);
  expect_error([] { activation_named("xielu"); }, "activation: 'xielu' has parameters of its own");
  expect_error([] { activation_named("gelo"); }, "activation: 'gelo' is not known; did you mean 'gelu'?");
}

}  // namespace
}  // namespace heed::test
