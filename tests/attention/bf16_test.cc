// Attention on bf16 tensors. On the CPU it converts them to f32, computes in f32 and rounds the results to bf16.
// GPUs multiply bf16 numbers, rounded weights too.
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

void expect_rounded(const Tensor& half, const Tensor& full, const char* what) {
  EXPECT_EQ(half.dtype(), DType::bf16);
  if (test_device() == kCpu)
    EXPECT_EQ(half.to_vector<float>(), cast(full, DType::bf16).to_vector<float>()) << what;
  else
    EXPECT_LT(relative_error(half, full), 4e-3) << what;
}

// strided: heads within tokens, the layout of projections.
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
  expect_rounded(half[0], full[0], "out");
  if (options.hard == Hard::no && z.M > 1) {
    // The gradients of scores also depend on the rounded output.
    EXPECT_LT(relative_error(half[1], full[1]), 1e-2) << "dq";
    EXPECT_LT(relative_error(half[2], full[2]), 1e-2) << "dk";
  }
  expect_rounded(half[3], full[3], "dv");
}

TEST(AttentionBf16, matches_the_rounded_f32_result) {
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
