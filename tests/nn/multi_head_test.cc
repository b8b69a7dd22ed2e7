// Multi-head attention against the formula per head, and the properties that follow from its definition.
#include "heed/nn/multi_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

// Self-attention unless the memory has another width.
void check_against_formula(const std::string& what, const MultiHeadOptions& options, const plain::Score& score = {},
                           const AttentionOptions& terms = {}) {
  Params params(1);
  const MultiHeadAttention layer = make_multi_head(Scope(params, initializer::bert()) / "attention", options);
  randomize(params, 0.7f);
  const bool cross = options.memory_width != 0;
  const Tensor x = normal_input({2, 5, options.width}, 1), memory = normal_input({2, 3, options.memory_width}, 2);
  check_module(what, {.params = params,
                      .inputs = cross ? Tensors{x, memory} : Tensors{x},
                      .run = [&](const Tensors& in) { return cross ? layer(in[0], in[1], terms) : layer(in[0], terms); },
                      .reference =
                          [&](const NamedDoubles& p, const Many& in) {
                            return plain::multi_head(p, "attention", in[0], in[cross ? 1 : 0], layer.heads, layer.key_heads, score);
                          }});
}

TEST(MultiHead, matches_the_formula_per_head) {
  check_against_formula("self", {.width = 6, .heads = 3});
  check_against_formula("one head, no biases", {.width = 3, .bias = false, .output_bias = false});
  check_against_formula("causal", {.width = 6, .heads = 2}, plain::causal, {.terms = {Causal{}}});
  check_against_formula("cross, of other width", {.width = 6, .heads = 3, .memory_width = 4});
  check_against_formula("wide heads", {.width = 4, .heads = 3, .head_width = 5});
  check_against_formula("wider values, other output", {.width = 5, .heads = 2, .head_width = 3, .value_width = 4, .output_width = 7});
  check_against_formula("grouped keys", {.width = 8, .heads = 4, .key_heads = 2});
  check_against_formula("one key head", {.width = 8, .heads = 4, .key_heads = 1});
}

TEST(MultiHead, supports_layers_with_score_terms_only) {
  Params params(1);
  const MultiHeadOptions options{.width = 4, .heads = 3, .content = false, .project_values = false, .positions = [](const Scope& scope) {
                                   return std::vector<ScorePositions>{gaussian_positions(scope, 3, 2)};
                                 }};
  const MultiHeadAttention layer = make_multi_head(Scope(params, initializer::bert()) / "attention", options);
  EXPECT_EQ(params.count(), 3 * 4 * 4 + 4 + 3 + 3 * 2);
  randomize(params, 0.5f);
  check_module("gaussian", {.params = params,
                            .inputs = {normal_input({2, 6, 4}, 1)},
                            .run = [&](const Tensors& in) { return layer(in[0]); },
                            .reference =
                                [](const NamedDoubles& p, const Many& in) {
                                  const Doubles &alpha = p.at("attention.positions.alpha"), &center = p.at("attention.positions.center");
                                  return plain::multi_head(p, "attention", in[0], in[0], 3, 1,
                                                           [&](double, int64_t, int64_t h, int64_t i, int64_t j) {
                                                             const double down = static_cast<double>(i / 2 - j / 2) - center[2 * h];
                                                             const double along = static_cast<double>(i % 2 - j % 2) - center[2 * h + 1];
                                                             return -alpha[h] * (down * down + along * along);
                                                           });
                                }});
}

// 3 heads on a grid 16 tokens wide; every head has the width of the layer.
MultiHeadAttention position_only_layer(Params& params, int64_t width) {
  return make_multi_head(Scope(params, initializer::bert()),
                         {.width = width, .heads = 3, .content = false, .project_values = false, .positions = [](const Scope& scope) {
                            return std::vector<ScorePositions>{gaussian_positions(scope, 3, 16)};
                          }});
}

TEST(MultiHead, computes_layers_with_score_terms_only_in_bf16) {
  Params params(1);
  const MultiHeadAttention layer = position_only_layer(params, 8);
  randomize(params, 0.5f);
  const Tensor tokens = cast(normal_input({2, 64, 8}, 1), DType::bf16).detach(),
               g = cast(normal_input({2, 64, 8}, 2), DType::bf16).detach();
  const auto run = [&](DType dtype) {
    for (const Parameter& parameter : params.all()) parameter.tensor.zero_grad();
    const Tensor x = cast(tokens, dtype).detach().require_grad(), y = layer(x);
    backward(y, cast(g, dtype));
    Tensors found{y.detach(), x.grad()};
    for (const Parameter& parameter : params.all()) found.push_back(parameter.tensor.grad());
    return found;
  };
  const Tensors half = run(DType::bf16), full = run(DType::f32);
  for (size_t i = 0; i < half.size(); ++i) {
    EXPECT_EQ(half[i].dtype(), i < 2 ? DType::bf16 : DType::f32);
    const Tensor a = cast(half[i], DType::f32), b = full[i];
    EXPECT_LT(std::sqrt(sum((a - b) * (a - b)).item() / sum(b * b).item()), 2e-2) << i;
  }
}

TEST(MultiHead, does_not_save_heads_of_score_terms_only) {
  Params params(1);
  const MultiHeadAttention layer = position_only_layer(params, 64);
  const Tensor x = normal_input({16, 256, 64}, 1).require_grad();
  const auto in_use = [] { return memory_use(test_device()).in_use; };
  const int64_t before = in_use();
  const Tensor y = layer(x);
  const int64_t bytes_of_x = x.count() * int64_t{sizeof(float)};
  // y, and maps; the three heads would add 3. A GPU with enough memory may save them.
  if (test_device() == kCpu) {
    EXPECT_LT(in_use() - before, 2 * bytes_of_x);
  }
  backward(sum(y));
  EXPECT_TRUE(x.grad().defined());
}

TEST(MultiHead, fused_projections_match_separate_ones) {
  for (int64_t key_heads : {4, 2}) {
    Params one(1), three(1);
    const MultiHeadOptions options{.width = 12, .heads = 4, .key_heads = key_heads};
    MultiHeadOptions fused = options;
    fused.fused = true;
    const MultiHeadAttention separate = make_multi_head(Scope(three, initializer::bert()), options);
    const MultiHeadAttention joined = make_multi_head(Scope(one, initializer::bert()), fused);
    randomize(three);
    copy_into(concat({separate.query.weight, separate.key.weight, separate.value.weight}, 0).detach(), joined.qkv.weight.detach());
    copy_into(concat({separate.query.bias, separate.key.bias, separate.value.bias}, 0).detach(), joined.qkv.bias.detach());
    copy_into(separate.output.weight.detach(), joined.output.weight.detach());
    copy_into(separate.output.bias.detach(), joined.output.bias.detach());
    const Tensor x = normal_input({2, 5, 12}, 1);
    expect_near(joined(x), separate(x), 2e-5);
    backward(sum(joined(x)));
    backward(sum(separate(x)));
    expect_near(joined.qkv.weight.grad(),
                concat({separate.query.weight.grad(), separate.key.weight.grad(), separate.value.weight.grad()}, 0), 2e-4);
  }
}

TEST(MultiHead, fused_projections_are_initialized_like_separate_ones) {
  Params params(1);
  const Initializers xavier = initializer::original(96);
  const MultiHeadAttention layer = make_multi_head(Scope(params, xavier), {.width = 96, .heads = 4, .fused = true});
  const Tensor squares = layer.qkv.weight.detach() * layer.qkv.weight.detach();
  EXPECT_NEAR(mean(squares).item(), 1.0 / 96, 0.03 / 96);
}

TEST(MultiHead, has_the_shapes_of_bert_base) {
  Params params(1);
  const MultiHeadAttention layer = make_multi_head(Scope(params, initializer::bert()), {.width = 768, .heads = 12});
  const Tensor x = normal_input({1, 5, 768}, 1);
  const Heads at = layer.project(x);
  for (const Tensor& each : {at.q, at.k, at.v}) {
    EXPECT_EQ(each.shape(), (Shape{1, 12, 5, 64}));
    EXPECT_EQ(transpose(each, 1, 2).shape(), (Shape{1, 5, 12, 64}));
    EXPECT_TRUE(transpose(each, 1, 2).is_contiguous());  // a view of the projection
  }
  EXPECT_EQ(layer(x).shape(), x.shape());
}

// N_h (2 D_i D_hid + D_i D_o) + N_h D_o D_out + D_out
TEST(MultiHead, parameter_counts_match_the_formula) {
  const int64_t heads = 3, in = 10, hidden = 4, value = 5, out = 7;
  Params params(1);
  make_multi_head(Scope(params, initializer::bert()),
                  {.width = in, .heads = heads, .head_width = hidden, .value_width = value, .output_width = out, .bias = false});
  EXPECT_EQ(params.count(), heads * (2 * in * hidden + in * value) + heads * value * out + out);
  Params wide(1);  // nine heads, each as wide as the tokens
  make_multi_head(Scope(wide, initializer::bert()), {.width = 400, .heads = 9, .head_width = 400, .bias = false});
  EXPECT_EQ(wide.count(), 9 * 3 * 400 * 400 + 9 * 400 * 400 + 400);
}

TEST(MultiHead, is_permutation_equivariant_without_positions) {
  Params params(1);
  MultiHeadAttention layer = make_multi_head(Scope(params, initializer::bert()), {.width = 8, .heads = 2});
  randomize(params);
  const Tensor x = normal_input({2, 6, 8}, 1), order = Tensor::from(std::vector<int64_t>{3, 0, 5, 1, 4, 2}, {6}, test_device());
  expect_near(layer(index_select(x, 1, order)), index_select(layer(x), 1, order), 1e-5);
  const auto differs = [&] {
    const Tensor apart = layer(index_select(x, 1, order)) - index_select(layer(x), 1, order);
    return max(apart).item() > 1e-2f;
  };
  layer.rotary = Rotary(6, 4);
  EXPECT_TRUE(differs());
  layer.rotary.reset();
  layer.positions = {Term(Alibi{alibi_slopes(2).to(test_device())})};
  EXPECT_TRUE(differs());
}

TEST(MultiHead, two_cached_steps_match_one_pass) {
  Params params(1);
  MultiHeadAttention layer = make_multi_head(Scope(params, initializer::bert()), {.width = 8, .heads = 2, .rotary = Rotary(6, 4)});
  randomize(params);
  const Tensor x = normal_input({1, 6, 8}, 1), early = slice(x, 1, 0, 4), late = slice(x, 1, 4, 6);
  const Heads before = layer.project(early), after = layer.project(late, 4);
  const Heads cached{after.q, concat({before.k, after.k}, 2), concat({before.v, after.v}, 2)};
  const Tensor whole = layer(x, {.terms = {Causal{}}}), step = layer.join(layer.attend(cached, {.terms = {Causal{4}}}));
  expect_near(step, slice(whole, 1, 4, 6), 1e-5);
}

TEST(MultiHead, refuses_invalid_arguments) {
  Params params(1);
  const Scope scope(params, initializer::bert());
  expect_error([&] { make_multi_head(scope, {.width = 10, .heads = 3}); }, "multi_head: width 10 does not divide into 3 heads");
  expect_error([&] { make_multi_head(scope, {.heads = 3}); }, "multi_head: width 0 and 3 heads");
  expect_error([&] { make_multi_head(scope, {.width = 12, .heads = 4, .key_heads = 3}); }, "4 heads do not share 3 key heads evenly");
  expect_error([&] { make_multi_head(scope, {.width = 12, .heads = 4, .memory_width = 5, .fused = true}); },
               "multi_head: fused projections");
  expect_error([&] { make_multi_head(scope, {.width = 12, .heads = 4, .key_heads = 2, .project_values = false}); },
               "2 key heads without value projection");
  const MultiHeadAttention layer = make_multi_head(scope, {.width = 4, .fused = true});
  expect_error([&] { layer(Tensor::ones({3, 4}, test_device())); }, "multi_head: x has shape (3, 4), expected (B, N, D)");
  expect_error(
      [&] {
        layer(Tensor::ones({1, 3, 4}, test_device()), Tensor::ones({1, 2, 4}, test_device()));
      },
      "multi_head: a fused projection attends to its own tokens");
}

}  // namespace
}  // namespace heed::test
