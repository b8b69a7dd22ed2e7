// Matrix products as kernels call them: every layout of the operands, gaps between rows, one row, an inner size of one, sizes
// with one block and with many, and functions that are applied to tiles while they are in the cache.
#include "heed/ops/gemm_cpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "tests/ops/matrices.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

struct ProductSizes {
  int64_t M, N, K;
};

// c = a b, then 1 is added to each tile by the task that computed it.
std::vector<float> product_and_one(const ProductSizes& size, Filled& a, Filled& b, int64_t gap) {
  Filled c(size.M, size.N, false, gap, 3);
  cpu::gemm({.M = size.M,
             .N = size.N,
             .K = size.K,
             .operands =
                 [&](int64_t, Matrix& x, Matrix& y, Matrix& z) {
                   x = a.matrix();
                   y = b.matrix();
                   z = c.matrix();
                 },
             .after =
                 [&](int64_t, const Tile& tile) {
                   for (int64_t row = tile.row; row < tile.row + tile.rows; ++row)
                     for (int64_t column = tile.column; column < tile.column + tile.columns; ++column)
                       c.values[static_cast<size_t>(row * c.stride + column)] += 1;
                 }});
  return c.values;
}

void check_product(const ProductSizes& size, bool transpose_a, bool transpose_b, int64_t gap) {
  SCOPED_TRACE(testing::Message() << size.M << " x " << size.N << " x " << size.K << (transpose_a ? ", a transposed" : "")
                                  << (transpose_b ? ", b transposed" : "") << ", gap " << gap);
  Filled a(size.M, size.K, transpose_a, gap, 1), b(size.K, size.N, transpose_b, gap, 2);
  const Filled untouched(size.M, size.N, false, gap, 3);
  const std::vector<float> result = product_and_one(size, a, b, gap);
  for (int64_t row = 0; row < size.M; ++row) {
    for (int64_t column = 0; column < size.N; ++column) {
      double expected = 1, squares = 1;
      for (int64_t k = 0; k < size.K; ++k) {
        const double term = a.at(row, k) * b.at(k, column);
        expected += term;
        squares += term * term;
      }
      ASSERT_NEAR(result[static_cast<size_t>(row * untouched.stride + column)], expected, 8e-6 * std::sqrt(squares))
          << "row " << row << " column " << column;
    }
    for (int64_t column = size.N; column < untouched.stride; ++column)
      ASSERT_EQ(result[static_cast<size_t>(row * untouched.stride + column)], static_cast<float>(untouched.at(row, column)));
  }
  const int before = thread_count();
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const std::vector<float> again = product_and_one(size, a, b, gap);
    EXPECT_EQ(std::memcmp(again.data(), result.data(), result.size() * sizeof(float)), 0) << threads << " threads";
  }
  set_thread_count(before);
}

TEST(Gemm, matches_the_definition_in_every_layout) {
  const ProductSizes every[] = {
      {1, 1, 1},      {1, 5, 7},      {1, 97, 131},    {1, 769, 517}, {1, 4099, 67}, {1, 17, 9001}, {1, 7, 0},  // one row
      {131, 97, 1},   {1031, 3, 1},   {5, 4099, 1},                                                             // inner size 1
      {13, 1, 11},    {7, 33, 19},    {3, 769, 131},                                                            // neither
      {803, 200, 35}, {97, 35, 2053}, {2051, 128, 19}, {2048, 64, 5},                                           // tall
  };
  for (const ProductSizes& size : every)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const int64_t gap : {0, 3}) check_product(size, transpose_a, transpose_b, gap);
}

// Large enough for stores that bypass the caches, with and without rows that are aligned to vectors.
TEST(Gemm, writes_large_outer_products) {
  for (const int64_t N : {4096, 4099}) {
    const int64_t M = 1031;
    Filled a(M, 1, true, 0, 1), b(1, N, false, 0, 2);
    const Tensor c = Tensor::zeros({M, N}, kCpu);
    cpu::gemm(M, N, 1, a.matrix(), b.matrix(), {raw<float>(c), N});
    const std::vector<float> result = c.to_vector<float>();
    for (int64_t row = 0; row < M; row += 103)
      for (int64_t column = 0; column < N; ++column)
        ASSERT_EQ(result[static_cast<size_t>(row * N + column)], static_cast<float>(a.at(row, 0)) * static_cast<float>(b.at(0, column)));
  }
}

// So many logits that they are computed in parts.
TEST(LinearCrossEntropy, logits_in_parts_match_full_logits) {
  constexpr int64_t rows = 700, classes = 9000, D = 5;
  Rng rng(4);
  const Tensor x = random_normal({rows, D}, 0, 1, rng, test_device()).require_grad(),
               w = random_normal({classes, D}, 0, 1, rng, test_device()).require_grad();
  const Tensor b = random_normal({classes}, 0, 1, rng, test_device()).require_grad();
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < rows; ++i) targets.push_back(i % 7 == 0 ? -100 : 13 * i % classes);
  const Tensor t = Tensor::from(targets, {rows}, test_device());
  std::vector<std::vector<float>> gradients[2];
  float losses[2];
  for (const bool parts : {false, true}) {
    const Tensor loss = parts ? linear_cross_entropy(x, w, b, t) : cross_entropy(linear(x, w, b), t);
    losses[parts] = loss.item();
    backward(loss * 3);
    for (const Tensor& leaf : {x, w, b}) {
      gradients[parts].push_back(leaf.grad().to_vector<float>());
      leaf.zero_grad();
    }
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-5 * losses[0]);
  for (size_t k = 0; k < 3; ++k)
    for (size_t i = 0; i < gradients[0][k].size(); ++i) ASSERT_NEAR(gradients[0][k][i], gradients[1][k][i], 1e-6);
}

}  // namespace
}  // namespace heed::test
