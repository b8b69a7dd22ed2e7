// Attention on tensors stored as bf16: it computes in f32 what it computes on the widened tensors, and rounds what it stores.
#include <gtest/gtest.h>

#include "heed/attention/attention.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"

namespace heed::test {
namespace {

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(got, DType::f32), b = cast(expected, DType::f32);
  return std::sqrt(sum((a - b) * (a - b)).item() / sum(b * b).item());
}

// strided: heads inside tokens, as the projections of a layer give them.
void check_bf16(const Sizes& z, const AttentionOptions& options, bool strided) {
  const auto input = [&](int64_t heads, int64_t tokens, int64_t width, int seed) {
    const Tensor x =
        strided ? transpose(normal_input({z.B, tokens, heads, width}, seed), 1, 2) : normal_input({z.B, heads, tokens, width}, seed);
    return cast(x, DType::bf16).detach();
  };
  const Tensor g = input(z.H, z.N, z.E, 4);
  const auto run = [&](DType dtype) {
    Tensor q = cast(input(z.H, z.N, z.D, 1), dtype).detach(), k = cast(input(z.G, z.M, z.D, 2), dtype).detach(),
           v = cast(input(z.G, z.M, z.E, 3), dtype).detach();
    for (Tensor* x : {&q, &k, &v}) x->require_grad();
    const Tensor out = attention(q, k, v, options);
    backward(out, cast(g, dtype));
    return Tensors{out.detach(), q.grad(), k.grad(), v.grad()};
  };
  const Tensors half = run(DType::bf16), full = run(DType::f32);
  for (const Tensor& x : half) EXPECT_EQ(x.dtype(), DType::bf16);
  EXPECT_EQ(half[0].to_vector<float>(), cast(full[0], DType::bf16).to_vector<float>()) << "out";
  if (options.hard == Hard::no && z.M > 1) {
    // Scores' gradients also see the rounded output.
    EXPECT_LT(relative_error(half[1], full[1]), 1e-2) << "dq";
    EXPECT_LT(relative_error(half[2], full[2]), 1e-2) << "dk";
  }
  EXPECT_EQ(half[3].to_vector<float>(), cast(full[3], DType::bf16).to_vector<float>()) << "dv";
}

TEST(AttentionBf16, is_the_f32_result_rounded) {
  for (const Sizes& z :
       {Sizes{2, 3, 3, 65, 65, 64, 64}, Sizes{1, 4, 2, 130, 300, 20, 24}, Sizes{2, 2, 1, 5, 700, 16, 33}, Sizes{1, 1, 1, 9, 1, 7, 3}})
    for (const bool strided : {false, true}) {
      SCOPED_TRACE(std::to_string(z.N) + " queries, " + std::to_string(z.M) + " keys" + (strided ? ", strided" : ""));
      check_bf16(z, {}, strided);
      check_bf16(z, {.terms = {Causal{}}}, strided);
      check_bf16(z, {.hard = Hard::no_gradient}, strided);
    }
}

}  // namespace
}  // namespace heed::test
