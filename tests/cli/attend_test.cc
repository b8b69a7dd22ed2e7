// heed attend against the library: every option and every tensor, outputs, probabilities and gradients.
#include <cmath>
#include <functional>

#include "heed/attention/attention.h"
#include "heed/attention/channel_attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/pooled_keys.h"
#include "tests/cli/attend_run.h"

namespace heed::test {
namespace {

constexpr int64_t H = 4, N = 12, M = 12, D = 5;

void expect_close(const std::string& what, const Tensor& got, const Tensor& expected) {
  ASSERT_TRUE(got.defined()) << what << " is missing";
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const std::vector<float> a = got.to_vector<float>(), b = expected.to_vector<float>();
  float largest = 1e-3f;
  for (const float x : b) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5f * largest) << what << " at " << i;
}

using Compute = std::function<Tensor(const TensorMap& t)>;

// The program with these tensors and options equals `compute`, forward and backward. The tensor `fixed` has no gradient.
void expect_computes(const std::string& options, const TensorMap& more, const Compute& compute, const std::string& fixed = "") {
  SCOPED_TRACE("options: " + options + (more.empty() ? "" : ", tensors: " + more.begin()->first));
  TensorMap inputs = small_inputs();
  for (const auto& [name, tensor] : more) inputs[name] = tensor;
  TensorMap leaves = inputs;
  for (auto& [name, tensor] : leaves)
    if (tensor.dtype() == DType::f32 && name != fixed) tensor.require_grad();
  const Tensor out = compute(leaves);
  inputs["grad_out"] = normal_input(out.shape(), 9);
  backward(out, inputs["grad_out"]);
  const Attended got = run_attend(inputs, options);
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(got.err, "");
  size_t expected = 1;
  expect_close("out", got.tensors.at("out"), out);
  for (const auto& [name, leaf] : leaves) {
    if (!leaf.needs_grad()) continue;
    ++expected;
    EXPECT_NE(got.out.find("grad_" + name), std::string::npos) << got.out;
    ASSERT_TRUE(got.tensors.contains("grad_" + name)) << name;
    expect_close("grad_" + name, got.tensors.at("grad_" + name), leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape(), kCpu));
  }
  EXPECT_EQ(got.tensors.size(), expected);
}

// The library's attention with these terms.
using Terms = std::vector<Term>;
Compute learned(const std::function<Terms(const TensorMap&)>& terms, std::optional<float> beta = {}) {
  return [=](const TensorMap& t) { return attention(t.at("q"), t.at("k"), t.at("v"), {.beta = beta, .terms = terms(t)}); };
}
Compute with(const Terms& terms, std::optional<float> beta = {}) {
  return learned([=](const TensorMap&) { return terms; }, beta);
}

TEST(Attend, temperature) {
  expect_computes("", {}, with({}));
  expect_computes("beta=0.3", {}, with({}, 0.3f));
  expect_computes("scale=0.3 content=true", {}, with({}, 0.3f));
  expect_computes("content=false", {}, with({}, 0.0f));
  for (const Shape& shape : {Shape{H}, Shape{1}})
    expect_computes("", {{"beta", normal_input(shape)}},
                    [](const TensorMap& t) { return attention(t.at("q"), t.at("k"), t.at("v"), {.beta = t.at("beta")}); });
}

TEST(Attend, masks) {
  expect_computes("causal=true", {}, with({Causal{}}));
  expect_computes("causal=true offset=-2", {}, with({Causal{-2}}));
  expect_computes("window=2", {}, with({Window{2, 2}}));
  expect_computes("window=3,0 globals=1", {}, with({Window{3, 0, 1}}));
  expect_computes("window=3,0,1", {}, with({Window{3, 0, 1}}));
  expect_computes("chunk=5 shift=2", {}, with({Chunks{5, 2}}));
  expect_computes("chunks=5", {}, with({Chunks{5}}));
  expect_computes("chunks=5,shifted", {}, with({Chunks{5, 2}}));
  expect_computes("chunks=5,shifted shift=1", {}, with({Chunks{5, 1}}));
  expect_computes("dilation=3 causal=false", {}, with({Dilated{3}}));
  expect_computes("grid=3x4 grid_window=1,2", {}, with({GridWindow{1, 2, 4}}));
  const Tensor lengths = Tensor::from(std::vector<int64_t>{0, 7}, {2}, kCpu);
  expect_computes("lengths=0,7", {}, with({KeyLengths{lengths}}));
  expect_computes("", {{"lengths", converted(lengths, DType::i32)}}, with({KeyLengths{lengths}}));
  for (const DType dtype : {DType::boolean, DType::u8, DType::i64}) {
    const Tensor mask = random_mask({N, M}, dtype, 5), keys = random_mask({2, M}, dtype, 6), blocks = random_mask({H, 3, 3}, dtype, 7);
    expect_computes("", {{"mask", mask}}, with({Mask{reshape(converted(mask, DType::boolean), {1, 1, N, M})}}));
    expect_computes("", {{"key_mask", keys}}, with({Mask{reshape(converted(keys, DType::boolean), {2, 1, 1, M})}}));
    expect_computes("block=5", {{"block_pattern", blocks}}, with({BlockSparse{converted(blocks, DType::boolean), 5}}));
  }
  const Tensor row = random_mask({M}, DType::boolean, 8), per_head = random_mask({H, 1, M}, DType::boolean, 8);
  expect_computes("", {{"mask", row}}, with({Mask{reshape(row, {1, 1, 1, M})}}));
  expect_computes("", {{"mask", per_head}}, with({Mask{reshape(per_head, {1, H, 1, M})}}));
  expect_computes("causal=true window=4 dilation=2", {{"key_mask", row}},
                  with({Mask{reshape(row, {1, 1, 1, M})}, Causal{}, Window{4, 4}, Dilated{2}}));
}

TEST(Attend, queries_after_a_cache) {
  const TensorMap last{{"q", normal_input({2, 4, 5, D}, 4)}};
  expect_computes("causal=true offset=7", last, with({Causal{7}}));
  expect_computes("causal=true window=3 first_query=7", last, [](const TensorMap& t) {
    return attention(t.at("q"), t.at("k"), t.at("v"), {.terms = {Causal{}, Window{3, 3}}, .first_query = 7});
  });
  TensorMap more = last;
  more["relative_table"] = normal_input({H, 3, 3}, 5);
  expect_computes("first_query=7 grid=3x4", more, [](const TensorMap& t) {
    return attention(t.at("q"), t.at("k"), t.at("v"), {.terms = {RelativeBias2d{t.at("relative_table"), 4}}, .first_query = 7});
  });
}

TEST(Attend, addends) {
  const Tensor holes = masked_fill(normal_input({H, N, M}, 4), random_mask({H, N, M}, DType::boolean, 5), -INFINITY);
  expect_computes("", {{"bias", holes}}, learned([](auto& t) { return Terms{Bias{reshape(t.at("bias"), {1, H, N, M})}}; }));
  expect_computes("", {{"mask", holes}}, learned([](auto& t) { return Terms{Bias{reshape(t.at("mask"), {1, H, N, M})}}; }), "mask");
  std::vector<float> slopes;
  for (int h = 1; h <= H; ++h) slopes.push_back(std::pow(2.0f, -8.0f * static_cast<float>(h) / H));
  expect_computes("alibi=true", {}, with({Alibi{Tensor::from(slopes, {H}, kCpu)}}));
  expect_computes("", {{"slopes", normal_input({1})}}, learned([](auto& t) { return Terms{Alibi{expand(t.at("slopes"), {H})}}; }));
  expect_computes("softcap=1.5 beta=1", {}, with({SoftCap{1.5f}}, 1.0f));
  // The soft cap applies to additive terms, not to a mask.
  const Tensor low = Tensor::full({N, M}, -30, kCpu);
  const TensorMap both{{"bias", normal_input({M})}, {"mask", masked_fill(low, random_mask({N, M}, DType::boolean, 6), 0)}};
  const auto capped = [](auto& t) {
    return Terms{Bias{reshape(t.at("bias"), {1, 1, 1, M})}, SoftCap{1}, Bias{reshape(t.at("mask"), {1, 1, N, M})}};
  };
  expect_computes("soft_cap=1", both, learned(capped), "mask");
}

TEST(Attend, relative_positions) {
  for (const Shape& shape : {Shape{H, 7}, Shape{1, 7}, Shape{7}})
    expect_computes("", {{"relative_table", normal_input(shape)}}, learned([](auto& t) {
                      return Terms{RelativeBias{expand(reshape(t.at("relative_table"), {-1, 7}), {H, 7})}};
                    }));
  expect_computes("grid=3x4", {{"relative_table", normal_input({H, 3, 5})}}, learned([](auto& t) {
                    return Terms{RelativeBias2d{t.at("relative_table"), 4}};
                  }));
  // The four terms of relative keys, first with a scalar beta, then with a learned one per head.
  TensorMap four{{"relative_keys", normal_input({H, 5, D}, 4)}, {"u", normal_input({H, D}, 5)}, {"w", normal_input({D}, 6)}};
  const auto biased_query = [](const TensorMap& t, const char* by) { return t.at("q") + reshape(t.at(by), {1, -1, 1, D}); };
  expect_computes("beta=0.4", four, [&](const TensorMap& t) {
    const RelativeKeys keys{biased_query(t, "w") * 0.4f, t.at("relative_keys")};
    return attention(biased_query(t, "u"), t.at("k"), t.at("v"), {.beta = 0.4f, .terms = {keys}});
  });
  four["beta"] = normal_input({H}, 7);
  expect_computes("causal=true", four, [&](const TensorMap& t) {
    const Tensor beta = reshape(t.at("beta"), {1, H, 1, 1});
    const RelativeKeys keys{biased_query(t, "w") * beta, t.at("relative_keys")};
    return attention(biased_query(t, "u") * beta, t.at("k"), t.at("v"), {.beta = 1.0f, .terms = {keys, Causal{}}});
  });
}

// The file format covers every term with tensors.
TEST(Attend, parameters_of_terms) {
  for (const TermInfo& info : term_infos()) {
    if (info.parameters.empty()) continue;
    TermInput given{.values = {}, .tensors = {}, .place = {.tokens = M, .rows = 3, .columns = 4}};
    complete_settings(info, given.values, given.place);
    TensorMap more;
    for (const TermParameter& each : info.parameters) more[each.file_name] = positive_input(each.shape(H, given.values));
    expect_computes(info.needs_grid ? "grid=3x4" : "", more, learned([&](auto& t) {
                      TermInput input = given;
                      for (const TermParameter& each : info.parameters) input.tensors.push_back(t.at(each.file_name));
                      return Terms{make_term(info, input)};
                    }));
  }
  expect_computes("bucketed=8,16,false", {{"bucket_table", normal_input({8})}}, learned([](auto& t) {
                    return Terms{BucketedBias{expand(reshape(t.at("bucket_table"), {1, 8}), {H, 8}), false, 16}};
                  }));
}

TEST(Attend, gaussian_positions) {
  expect_computes("grid=3x4", {{"alpha", positive_input({H})}, {"center", normal_input({H, 2})}}, learned([](auto& t) {
                    return Terms{Gaussian2d{t.at("alpha"), t.at("center"), 4}};
                  }));
  expect_computes("grid=4x3 content=false", {{"alpha", positive_input({1})}, {"center", normal_input({2})}},
                  learned(
                      [](auto& t) {
                        const Tensor center = expand(reshape(t.at("center"), {1, 2}), {H, 2});
                        return Terms{Gaussian2d{expand(t.at("alpha"), {H}), center, 3}};
                      },
                      0.0f));
  expect_computes("grid=3x4 beta=2", {{"spread", normal_input({H, 2, 2})}, {"center", normal_input({H, 2})}},
                  learned(
                      [](auto& t) {
                        return Terms{Gaussian2dFull{t.at("spread"), t.at("center"), 4}};
                      },
                      2.0f));
}

TEST(Attend, hard_and_dropout) {
  const auto compute = [](AttentionOptions options) {
    return [options](const TensorMap& t) {
      Rng rng(7);
      AttentionOptions all = options;
      all.rng = &rng;
      return attention(t.at("q"), t.at("k"), t.at("v"), all);
    };
  };
  expect_computes("hard=true", {}, compute({.hard = Hard::straight_through}));
  expect_computes("hard=true hard_gradient=none", {}, compute({.hard = Hard::no_gradient}));
  expect_computes("hard=false", {}, compute({}));
  expect_computes("dropout=0.25 seed=7", {}, compute({.dropout = 0.25f}));
}

TEST(Attend, linear) {
  const auto compute = [](LinearAttentionOptions options) {
    return [options](const TensorMap& t) {
      LinearAttentionOptions all = options;
      if (t.contains("projection")) all.projection = t.at("projection").detach();
      return linear_attention(t.at("q"), t.at("k"), t.at("v"), all);
    };
  };
  expect_computes("kind=linear", {}, compute({}));
  expect_computes("kind=linear features=relu causal=true beta=2", {}, compute({.map = FeatureMap::relu, .causal = true, .beta = 2.0f}));
  expect_computes("kind=linear quadratic=true lengths=4,12", {},
                  compute({.lengths = Tensor::from(std::vector<int64_t>{4, 12}, {2}, kCpu), .quadratic = true}));
  Rng rng(3);
  const LinearAttentionOptions random{.map = FeatureMap::random, .projection = random_projection(9, D, rng)};
  expect_computes("kind=linear random_features=9 seed=3", {}, compute(random));
  expect_computes("kind=linear features=exp", {{"projection", random.projection}}, compute({.map = FeatureMap::random}), "projection");
}

TEST(Attend, channels_and_pooled_keys) {
  const TensorMap channels{{"k", normal_input({2, 4, 12, 6}, 2)}, {"v", normal_input({2, 4, 7, 6}, 3)}};
  const auto compute = [](std::optional<float> beta) {
    return [=](const TensorMap& t) { return channel_attention(t.at("q"), t.at("k"), t.at("v"), {beta}); };
  };
  expect_computes("kind=channel", channels, compute({}));
  expect_computes("kind=channel scale=0.2", channels, compute(0.2f));
  TensorMap per_head = channels;
  per_head["beta"] = normal_input({H});
  expect_computes("kind=channel", per_head, [](const TensorMap& t) {
    return channel_attention(t.at("q") * reshape(t.at("beta"), {1, H, 1, 1}), t.at("k"), t.at("v"), {1.0f});
  });
  expect_computes("pool=2 grid=3x4", {{"q", normal_input({2, 4, 5, D}, 1)}}, [](const TensorMap& t) {
    return attention(t.at("q"), pooled_keys(t.at("k"), {3, 4}, 2), pooled_keys(t.at("v"), {3, 4}, 2));
  });
}

TEST(Attend, probabilities) {
  const TensorMap t = small_inputs();
  const auto map_of = [&](const Tensor& q, const Tensor& k, float beta) {
    const Tensor all = matmul(reshape(q, {2, 2, 2, N, D}), transpose(reshape(k, {2, 2, 1, M, D}), 3, 4));
    return reshape(softmax(scale(all, beta)), {2, H, N, M});
  };
  const Tensor map = map_of(t.at("q"), t.at("k"), 0.7f);
  expect_close("whole", run_attend(t, "beta=0.7 probabilities=true dropout=0.5").tensors["probabilities"], map);
  const auto some = [](const Tensor& x, int axis, const std::vector<int64_t>& which) {
    return index_select(x, axis, Tensor::from(which, {std::ssize(which)}, kCpu));
  };
  expect_close("some", run_attend(t, "beta=0.7 probabilities=true heads=3,0 rows=5").tensors["probabilities"],
               some(some(map, 1, {3, 0}), 2, {5}));
  const Attended hard = run_attend(t, "probabilities=true hard=true");
  expect_close("hard", hard.tensors.at("out"),
               matmul(reshape(hard.tensors.at("probabilities"), {2, 2, 2, N, M}), reshape(t.at("v"), {2, 2, 1, M, 3}))
                   .view({2, H, N, 3}, {H * N * 3, N * 3, 3, 1}));
  const Attended linear = run_attend(t, "probabilities=true kind=linear rows=2,3");
  expect_close("linear", sum(linear.tensors.at("probabilities"), {3}), Tensor::ones({2, H, 2}, kCpu));
  const Attended channel = run_attend({{"q", t.at("q")}, {"k", t.at("q")}, {"v", t.at("q")}}, "probabilities=true kind=channel beta=0.3");
  expect_close("channel", channel.tensors.at("probabilities"), softmax(scale(matmul(transpose(t.at("q"), 2, 3), t.at("q")), 0.3f)));
}

TEST(Attend, fewer_axes_and_half_precision) {
  const TensorMap t = small_inputs();
  const Tensor expected = attention(t.at("q"), t.at("k"), t.at("v"), {.terms = {Causal{}}});
  TensorMap three, two, half;
  for (const auto& [name, x] : t) {
    three[name] = contiguous(reshape(slice(x, 0, 0, 1), {x.size(1), N, x.size(3)}));
    two[name] = contiguous(reshape(slice(three[name], 0, 0, 1), {N, x.size(3)}));
    half[name] = converted(x, name == "q" ? DType::bf16 : DType::f16);
  }
  three["grad_out"] = Tensor::ones({H, N, 3}, kCpu);
  two["grad_out"] = Tensor::ones({N, 3}, kCpu);
  const Attended as_three = run_attend(three, "causal=true probabilities=true"), as_two = run_attend(two, "causal=true probabilities=true");
  expect_close("(H, N, E)", as_three.tensors.at("out"), contiguous(reshape(slice(expected, 0, 0, 1), {H, N, 3})));
  expect_close("(N, E)", as_two.tensors.at("out"), contiguous(reshape(slice(slice(expected, 0, 0, 1), 1, 0, 1), {N, 3})));
  EXPECT_EQ(as_three.tensors.at("probabilities").shape(), (Shape{H, N, M}));
  EXPECT_EQ(as_three.tensors.at("grad_k").shape(), (Shape{2, M, D}));
  EXPECT_EQ(as_two.tensors.at("grad_q").shape(), (Shape{N, D}));
  TensorMap wide;
  for (const auto& [name, x] : half) wide[name] = converted(x, DType::f32);
  expect_close("halves", run_attend(half, "").tensors["out"], attention(wide.at("q"), wide.at("k"), wide.at("v")));
}

}  // namespace
}  // namespace heed::test
