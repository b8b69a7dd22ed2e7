// The separable form against attention over the whole map, which the double reference holds to account.
#include "heed/attention/separable.h"

#include <gtest/gtest.h>

#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

struct Grid {
  int64_t B, H, G, queries, keys, width, E;  // rows of queries, rows of keys
};

TEST(SeparableAttention, agrees_with_the_reference) {
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

TEST(SeparableAttention, is_chosen_by_itself_where_it_holds) {
  const Tensor q = normal_input({1, 1, 12, 2}, 2), v = normal_input({1, 1, 12, 2}, 1);
  const Gaussian2d on_rows{Tensor::ones({1}, test_device()), Tensor::full({1, 2}, 0.3, test_device()), 4},
      off_rows{on_rows.alpha, on_rows.center, 5};
  EXPECT_EQ(attention(q, q, v, {0.0f, {on_rows}}).to_vector<float>(), gaussian_attention(on_rows, 12, v).to_vector<float>());
  EXPECT_EQ(attention(q, q, v, {0.0f, {off_rows}}).shape(), v.shape());  // 12 tokens are no whole rows of 5
}

TEST(SeparableAttention, says_what_is_wrong) {
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
