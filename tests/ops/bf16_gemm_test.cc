// Products in bf16: against sums in double of numbers that were rounded before, in every layout and with any number of threads; linear
// layers and their gradients as close to f32 as eight bits of mantissa are.
#include "heed/ops/bf16_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "heed/core/parallel.h"
#include "tests/expect_error.h"
#include "tests/ops/matrices.h"

namespace heed::test {
namespace {

constexpr double kBf16 = 1.0 / 256, kF32 = 1e-6;  // half a step of the last bit; what sums of f32 may differ by, of sums of absolute values

void expect_product(int64_t M, int64_t N, int64_t K, bool turn_a, bool turn_b, int64_t gap) {
  SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K << (turn_a ? ", a turned" : "") << (turn_b ? ", b turned" : "")
                                  << ", gap " << gap);
  Filled a(M, K, turn_a, gap, 1), b(K, N, turn_b, gap, 2), c(M, N, false, gap, 3);
  const std::vector<float> before = c.values;
  gemm_bf16(M, N, K, a.matrix(), b.matrix(), c.matrix());
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double rounded = 0, exact = 0, sizes = 0;
      for (int64_t k = 0; k < K; ++k) {
        const double x = a.at(i, k), y = b.at(k, j);
        rounded += double{to_float(to_bf16(static_cast<float>(x)))} * double{to_float(to_bf16(static_cast<float>(y)))};
        exact += x * y;
        sizes += std::abs(x * y);
      }
      ASSERT_NEAR(c.at(i, j), rounded, kF32 * sizes + 1e-12) << i << ' ' << j;
      ASSERT_NEAR(c.at(i, j), exact, (2 * kBf16 + kBf16 * kBf16 + kF32) * sizes + 1e-12) << i << ' ' << j;
    }
  for (int64_t i = 0; i < M; ++i)  // what lies between rows is not touched
    for (int64_t j = N; j < c.stride; ++j) ASSERT_EQ(c.at(i, j), before[static_cast<size_t>(i * c.stride + j)]);
}

TEST(Bf16Product, sums_what_was_rounded) {
  for (const bool turn_a : {false, true})
    for (const bool turn_b : {false, true}) {
      for (const int64_t gap : {0, 3}) expect_product(67, 33, 129, turn_a, turn_b, gap);
      expect_product(1, 1, 1, turn_a, turn_b, 0);
      expect_product(5, 3, 7, turn_a, turn_b, 1);
      expect_product(300, 17, 65, turn_a, turn_b, 0);
      expect_product(1031, 9, 12, turn_a, turn_b, 0);
    }
  std::vector<float> out(6, 7);
  gemm_bf16(2, 3, 0, {nullptr, 0}, {nullptr, 3}, {out.data(), 3});
  EXPECT_EQ(out, std::vector<float>(6, 0));
  expect_error([&] { gemm_bf16({.batch = 2, .M = 1, .N = 1, .K = 1, .operands = {}}); }, "bf16: 2 products, expected one");
}

// Times one, a number is what it was rounded to.
TEST(Bf16Product, rounds_to_nearest_with_ties_to_even) {
  std::vector<float> numbers{0.0f,
                             -0.0f,
                             1.0f,
                             1 + 0x1p-8f,
                             1 + 0x3p-8f,
                             -1 - 0x1p-8f,
                             0x1.01p0f,
                             3.4e38f,
                             -3.4e38f,
                             0x1p-100f,
                             12345.678f,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity()};
  for (const float x : normal_input({4000}, 5).to_vector<float>()) numbers.push_back(x * 1e3f);
  const auto M = static_cast<int64_t>(numbers.size());
  std::vector<float> one{1}, out(numbers.size());
  gemm_bf16(M, 1, 1, {numbers.data(), 1}, {one.data(), 1}, {out.data(), 1});
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(out[i], to_float(to_bf16(numbers[i]))) << numbers[i];
  std::vector<float> nans(40, std::bit_cast<float>(0x7f800001u));  // whose upper half alone would be infinity
  gemm_bf16(40, 1, 1, {nans.data(), 1}, {one.data(), 1}, {out.data(), 1});
  for (size_t i = 0; i < nans.size(); ++i) EXPECT_TRUE(std::isnan(out[i]));
}

TEST(Bf16Product, any_number_of_threads_gives_the_same_bits) {
  const int before = thread_count();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    Filled a(531, 200, false, 0, 1), b(200, 77, true, 0, 2), g(531, 77, true, 0, 3);
    std::vector<float> out(531 * 77), weights(200 * 77);
    gemm_bf16(531, 77, 200, a.matrix(), b.matrix(), {out.data(), 77});
    gemm_bf16(200, 77, 531, {a.values.data(), 200, true}, {out.data(), 77}, {weights.data(), 77});
    out.insert(out.end(), weights.begin(), weights.end());
    results.push_back(out);
  }
  set_thread_count(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

struct LayerResult {
  std::vector<float> y, dx, dw, db;
};
LayerResult layer_result(Activation activation) {
  const Tensor x = normal_input({3, 21, 40}, 1).require_grad(), w = normal_input({24, 40}, 2).require_grad();
  const Tensor b = normal_input({24}, 3).require_grad();
  const Tensor y = linear(x, w, b, activation);
  backward(sum(y * normal_input({3, 21, 24}, 4)));
  return {y.to_vector<float>(), x.grad().to_vector<float>(), w.grad().to_vector<float>(), b.grad().to_vector<float>()};
}

// In the mean over all numbers: products deviate by some kBf16 / sqrt(3) of an operand, by chance.
void expect_close(const std::vector<float>& found, const std::vector<float>& exact) {
  ASSERT_EQ(found.size(), exact.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(double{found[i]} - double{exact[i]}, 2);
    size += std::pow(double{exact[i]}, 2);
  }
  EXPECT_LT(std::sqrt(error / size), 2 * kBf16);
  EXPECT_GT(std::sqrt(error / size), kBf16 / 100);  // it is not f32
}

TEST(Bf16Product, linear_layers_and_their_gradients_are_near_f32) {
  for (const Activation activation : {Activation::none, Activation::gelu}) {
    const LayerResult exact = layer_result(activation);
    const LayerResult narrow = [&] {
      const Bf16Layers active;
      return layer_result(activation);
    }();
    expect_close(narrow.y, exact.y);
    expect_close(narrow.dx, exact.dx);
    expect_close(narrow.dw, exact.dw);
    if (activation == Activation::none) {
      EXPECT_EQ(narrow.db, exact.db);  // no product
    }
    EXPECT_FALSE(Bf16Layers::active());
    EXPECT_EQ(layer_result(activation).y, exact.y);
  }
}

// The gradient is of the kind that the forward pass was, whatever holds when it is taken.
TEST(Bf16Product, gradients_remember_how_the_layer_ran) {
  const LayerResult narrow = [] {
    const Bf16Layers active;
    return layer_result(Activation::none);
  }();
  const Tensor x = normal_input({3, 21, 40}, 1).require_grad(), w = normal_input({24, 40}, 2).require_grad();
  const Tensor b = normal_input({24}, 3).require_grad();
  const Tensor y = [&] {
    const Bf16Layers active;
    return linear(x, w, b, Activation::none);
  }();
  backward(sum(y * normal_input({3, 21, 24}, 4)));
  EXPECT_EQ(w.grad().to_vector<float>(), narrow.dw);
}

}  // namespace
}  // namespace heed::test
