// The separable form against the reference of attention in double.
#include "heed/attention/separable.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

struct Grid {
  int64_t B, H, G, queries, keys, width, E;  // rows of queries, rows of keys
};

TEST(SeparableAttention, matches_the_reference) {
  for (const Grid& z : {Grid{1, 1, 1, 1, 1, 1, 1}, Grid{2, 3, 1, 4, 4, 5, 7}, Grid{1, 2, 2, 3, 6, 7, 16}, Grid{2, 4, 2, 9, 8, 11, 131}}) {
    const Sizes sizes{z.B, z.H, z.G, z.queries * z.width, z.keys * z.width, 1, z.E};
    const Tensor alpha = scale(positive_input({z.H}, 1), 0.3f).require_grad(), center = normal_input({z.H, 2}, 2).require_grad(),
                 v = normal_input({z.B, z.G, sizes.M, z.E}, 3).require_grad(), g = normal_input({z.B, z.H, sizes.N, z.E}, 4),
                 q = Tensor::zeros({z.B, z.H, sizes.N, 1}, test_device()), k = Tensor::zeros({z.B, z.G, sizes.M, 1}, test_device());
    const Subject subject{"gaussian", Gaussian2d{alpha, center, z.width},
                          [&](const Many& p, double s, int64_t, int64_t h, int64_t i, int64_t j) {
                            const double down = static_cast<double>(i / z.width - j / z.width) - p[1][2 * h];
                            const double along = static_cast<double>(i % z.width - j % z.width) - p[1][2 * h + 1];
                            return s - p[0][h] * (down * down + along * along);
                          },
                          [](int64_t, int64_t h, int64_t, int64_t) {
                            return std::vector<Read>{{0, h}, {1, 2 * h}, {1, 2 * h + 1}};
                          }};
    const Expected e = reference(sizes, 0, {subject}, {Doubles(q), Doubles(k), Doubles(v)}, Doubles(g));
    const auto run = [&] {
      for (const Tensor& x : {alpha, center, v}) x.zero_grad();
      const Tensor out = attention(q, k, v, {0.0f, {subject.term}});
      backward(out, g);
      return Tensors{out.detach(), v.grad(), alpha.grad(), center.grad()};
    };
    const Tensors got = run();
    expect_near("out", got[0], e.out, 2e-6);
    expect_near("dv", got[1], e.dv, 1e-4);
    expect_near("dalpha", got[2], e.parameters[0][0], 1e-4);
    expect_near("dcenter", got[3], e.parameters[0][1], 1e-4);
    expect_same_for_any_threads(got, run);
  }
}

double relative_difference(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(got, DType::f32), b = cast(expected, DType::f32);
  return std::sqrt(sum((a - b) * (a - b)).item() / sum(b * b).item());
}

// Random maps: rows: (H, Y, R), columns: (H, X, C); v: (B, G, R C, E).
struct MapCase {
  int64_t B, H, G, Y, R, X, C, E;
  bool strided;  // heads within tokens, the layout of projections
};

TEST(SeparableAttention, matches_the_rounded_f32_result_in_bf16) {
  for (const MapCase& z :
       {MapCase{2, 3, 1, 16, 16, 16, 16, 40, false}, MapCase{1, 9, 1, 8, 8, 8, 8, 400, false}, MapCase{2, 4, 2, 9, 8, 11, 7, 24, true},
        MapCase{3, 2, 2, 3, 5, 16, 13, 64, true}, MapCase{257, 2, 1, 3, 2, 2, 3, 8, false}, MapCase{2, 2, 1, 17, 4, 5, 2, 8, true},
        MapCase{2, 2, 1, 4, 4, 5, 2, 7, false}, MapCase{1, 2, 2, 4, 4, 5, 2, 19, true}}) {
    SCOPED_TRACE(std::to_string(z.Y) + " x " + std::to_string(z.X) + " queries, " + std::to_string(z.E) + " columns");
    const Tensor rows = softmax(normal_input({z.H, z.Y, z.R}, 1)).detach().require_grad(),
                 columns = softmax(normal_input({z.H, z.X, z.C}, 2)).detach().require_grad();
    const auto narrow_input = [&](int64_t heads, int64_t tokens, int seed) {
      const Tensor x =
          z.strided ? transpose(normal_input({z.B, tokens, heads, z.E}, seed), 1, 2) : normal_input({z.B, heads, tokens, z.E}, seed);
      return cast(x, DType::bf16).detach();
    };
    const Tensor values = narrow_input(z.G, z.R * z.C, 3), g = narrow_input(z.H, z.Y * z.X, 4);
    const auto run = [&](DType dtype) {
      for (const Tensor& x : {rows, columns}) x.zero_grad();
      const Tensor v = cast(values, dtype).detach().require_grad(), out = separable_attention(rows, columns, v);
      backward(out, cast(g, dtype));
      return Tensors{out.detach(), v.grad(), rows.grad(), columns.grad()};
    };
    const Tensors half = run(DType::bf16), full = run(DType::f32);
    const char* const names[] = {"out", "dv", "drows", "dcolumns"};
    for (size_t i = 0; i < half.size(); ++i) {
      EXPECT_EQ(half[i].dtype(), i < 2 ? DType::bf16 : DType::f32) << names[i];
      // Rounding to bf16 changes a number by up to 2^-8 of it; for tensor cores the maps and the sums over rows are rounded, too.
      EXPECT_LT(relative_difference(half[i], full[i]), 5e-3) << names[i];
    }
    expect_same_for_any_threads(half, [&] { return run(DType::bf16); });
  }
}

// The recomputed result has the heads of a token next to each other; layers read dense rows.
TEST(SeparableAttention, is_recomputed_for_backward_of_later_layers) {
  const Tensor map = softmax(normal_input({3, 4, 4}, 1)), v = normal_input({2, 1, 16, 5}, 2).require_grad(),
               w = normal_input({7, 5}, 3).require_grad(), g = normal_input({2, 3, 16, 7}, 4);
  for (const float p : {0.0f, 0.5f}) {
    const auto gradient = [&](bool recomputes) {
      const Tensor heads = separable_attention(map, map, v);
      Rng rng(5);
      w.zero_grad();
      backward(linear(dropout(recomputes ? heads : heads.detach(), p, rng), w), g);
      return w.grad().to_vector<float>();
    };
    EXPECT_EQ(gradient(true), gradient(false)) << "dropout " << p;
  }
}

// Heads joined as the output projection reads them, without a copy.
TEST(SeparableAttention, stores_the_heads_of_a_token_contiguously) {
  const Tensor map = softmax(normal_input({3, 4, 4}, 1)), out = separable_attention(map, map, normal_input({2, 1, 16, 5}, 2));
  EXPECT_TRUE(transpose(out, 1, 2).is_contiguous());
}

TEST(SeparableAttention, is_chosen_automatically) {
  const Tensor q = normal_input({1, 1, 12, 2}, 2), v = normal_input({1, 1, 12, 2}, 1);
  const Gaussian2d on_rows{Tensor::ones({1}, test_device()), Tensor::full({1, 2}, 0.3, test_device()), 4},
      off_rows{on_rows.alpha, on_rows.center, 5};
  EXPECT_EQ(attention(q, q, v, {0.0f, {on_rows}}).to_vector<float>(), gaussian_attention(on_rows, 12, v).to_vector<float>());
  EXPECT_EQ(attention(q, q, v, {0.0f, {off_rows}}).shape(), v.shape());  // 12 tokens are not a multiple of 5
}

TEST(SeparableAttention, reports_invalid_arguments) {
  const Tensor v = Tensor::zeros({1, 1, 12, 2}, test_device()), rows = Tensor::zeros({1, 3, 3}, test_device()),
               columns = Tensor::zeros({1, 4, 4}, test_device());
  expect_error([&] { separable_attention(rows, rows, v); }, "12 values on a grid of 3 x 3");
  expect_error([&] { separable_attention(rows, Tensor::zeros({2, 4, 4}, test_device()), v); }, "maps of 1 and 2 heads");
  expect_error(
      [&] {
        gaussian_attention({Tensor::ones({1}, test_device()), Tensor::zeros({1, 2}, test_device()), 5}, 10, v);
      },
      "10 queries and 12 keys");
}

}  // namespace
}  // namespace heed::test
