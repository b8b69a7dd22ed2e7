// Products of bf16 operands: against sums in double of rounded numbers, in every layout and with any number of threads; linear layers and
// their gradients as close to f32 as eight bits of mantissa allow.
#include "heed/ops/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "heed/core/parallel.h"
#include "tests/ops/matrices.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

constexpr double kBf16 = 1.0 / 256,
                 kF32 = 1e-6;  // half a unit in the last place; the error of f32 sums, relative to sums of absolute values

float rounded(double x) { return to_float(to_bf16(static_cast<float>(x))); }

// The values of a matrix as bf16, or as f32 that the product rounds.
struct Stored {
  Stored(const Filled& matrix, DType type) : values(matrix.values), stride(matrix.stride), transposed(matrix.transposed), dtype(type) {
    for (const float x : values) half.push_back(to_bf16(x));
  }
  GemmOperand operand() {
    void* data = dtype == DType::bf16 ? static_cast<void*>(half.data()) : static_cast<void*>(values.data());
    return {.data = data, .stride = stride, .transposed = transposed, .dtype = dtype};
  }
  double at(int64_t i) const { return dtype == DType::bf16 ? to_float(half[static_cast<size_t>(i)]) : values[static_cast<size_t>(i)]; }

  std::vector<float> values;
  std::vector<Bf16> half = {};
  int64_t stride;
  bool transposed;
  DType dtype;
};

struct Layout {
  bool a_transposed, b_transposed;
  int64_t gap;
  DType b_dtype, c_dtype;
};

void expect_product(int64_t M, int64_t N, int64_t K, const Layout& layout) {
  SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K << (layout.a_transposed ? ", a transposed" : "")
                                  << (layout.b_transposed ? ", b transposed" : "") << ", gap " << layout.gap << ", b "
                                  << name_of(layout.b_dtype) << ", c " << name_of(layout.c_dtype));
  const Filled a(M, K, layout.a_transposed, layout.gap, 1), b(K, N, layout.b_transposed, layout.gap, 2), c(M, N, false, layout.gap, 3);
  Stored left(a, DType::bf16), right(b, layout.b_dtype), out(c, layout.c_dtype);
  const Stored before = out;
  launch(gemm, kCpu, {.M = M, .N = N, .K = K, .a = left.operand(), .b = right.operand(), .c = out.operand()});
  const double last = layout.c_dtype == DType::bf16 ? kBf16 : 0;
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double sum = 0, sizes = 0;
      for (int64_t k = 0; k < K; ++k) {
        const double product = double{rounded(a.at(i, k))} * double{rounded(b.at(k, j))};
        sum += product;
        sizes += std::abs(product);
      }
      ASSERT_NEAR(out.at(i * out.stride + j), sum, kF32 * sizes + last * std::abs(sum) + 1e-12) << i << ' ' << j;
    }
  for (int64_t i = 0; i < M; ++i)  // the gap between rows is not written
    for (int64_t j = N; j < out.stride; ++j) ASSERT_EQ(out.at(i * out.stride + j), before.at(i * out.stride + j));
}

TEST(Bf16Gemm, sums_products_of_rounded_operands) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true})
      for (const DType b_dtype : {DType::f32, DType::bf16})
        for (const DType c_dtype : {DType::f32, DType::bf16}) {
          const auto layout = [&](int64_t gap) { return Layout{a_transposed, b_transposed, gap, b_dtype, c_dtype}; };
          for (const int64_t gap : {0, 3}) expect_product(67, 33, 129, layout(gap));
          expect_product(1, 1, 1, layout(0));
          expect_product(5, 3, 7, layout(1));
          expect_product(2, 3, 0, layout(0));
          expect_product(300, 17, 65, layout(0));
          expect_product(1031, 9, 12, layout(0));
          expect_product(40, 2100, 64, layout(0));
        }
}

// The product of a number and one is the rounded number.
TEST(Bf16Gemm, rounds_to_nearest_with_ties_to_even) {
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
  std::vector<Bf16> one{to_bf16(1)};
  const auto times_one = [&](std::vector<float> values) {
    const auto M = static_cast<int64_t>(values.size());
    std::vector<float> out(values.size());
    launch(gemm, kCpu,
           {.M = M,
            .N = 1,
            .K = 1,
            .a = {.data = values.data(), .stride = 1},
            .b = {.data = one.data(), .stride = 1, .dtype = DType::bf16},
            .c = {.data = out.data(), .stride = 1}});
    return out;
  };
  const std::vector<float> out = times_one(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(out[i], to_float(to_bf16(numbers[i]))) << numbers[i];
  for (const float x : times_one(std::vector<float>(40, std::bit_cast<float>(0x7f800001u))))
    EXPECT_TRUE(std::isnan(x));  // upper half: infinity
}

TEST(Bf16Gemm, has_the_same_bits_for_any_number_of_threads) {
  const int before = thread_count();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const Tensor x = cast(normal_input({531, 200}, 1), DType::bf16).require_grad(), w = normal_input({77, 200}, 2).require_grad();
    const Tensor y = linear(x, w, {}, Activation::gelu);
    backward(sum(y));
    std::vector<float> all = cast(y, DType::f32).to_vector<float>();
    for (const Tensor& leaf : {cast(x.grad(), DType::f32), w.grad()})
      for (const float value : leaf.to_vector<float>()) all.push_back(value);
    results.push_back(all);
  }
  set_thread_count(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

struct LayerResult {
  std::vector<float> y, dx, dw, db;
};
LayerResult layer_result(Activation activation, DType dtype) {
  const Tensor x = cast(normal_input({3, 21, 40}, 1), dtype).require_grad(), w = normal_input({24, 40}, 2).require_grad();
  const Tensor b = normal_input({24}, 3).require_grad();
  const Tensor y = linear(x, w, b, activation);
  EXPECT_EQ(y.dtype(), dtype);
  backward(sum(y * cast(normal_input({3, 21, 24}, 4), dtype)));
  EXPECT_EQ(x.grad().dtype(), dtype);
  EXPECT_EQ(w.grad().dtype(), DType::f32);
  EXPECT_EQ(b.grad().dtype(), DType::f32);
  const auto numbers = [](const Tensor& t) { return cast(t.detach(), DType::f32).to_vector<float>(); };
  return {numbers(y), numbers(x.grad()), numbers(w.grad()), numbers(b.grad())};
}

// Root mean square over all numbers: rounding changes an operand by about kBf16 / sqrt(3).
void expect_close_product(const std::vector<float>& found, const std::vector<float>& exact) {
  ASSERT_EQ(found.size(), exact.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(double{found[i]} - double{exact[i]}, 2);
    size += std::pow(double{exact[i]}, 2);
  }
  EXPECT_LT(std::sqrt(error / size), 2 * kBf16);
  EXPECT_GT(std::sqrt(error / size), kBf16 / 100);  // so bf16 was used
}

TEST(Bf16Gemm, linear_layers_and_their_gradients_are_near_f32) {
  for (const Activation activation : {Activation::none, Activation::gelu}) {
    const LayerResult exact = layer_result(activation, DType::f32), narrow = layer_result(activation, DType::bf16);
    expect_close_product(narrow.y, exact.y);
    expect_close_product(narrow.dx, exact.dx);
    expect_close_product(narrow.dw, exact.dw);
    expect_close_product(narrow.db, exact.db);
  }
}

// The loss over many classes: logits in parts, with the weight rounded once.
TEST(Bf16Gemm, linear_cross_entropy_is_near_f32) {
  constexpr int64_t rows = 700, classes = 9000, D = 5;
  const Tensor x = normal_input({rows, D}, 1).require_grad(), w = normal_input({classes, D}, 2).require_grad();
  const Tensor narrow = cast(x.detach(), DType::bf16).require_grad(), w2 = w.detach().require_grad();
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < rows; ++i) targets.push_back(13 * i % classes);
  const Tensor t = Tensor::from(targets, {rows}, test_device());
  const Tensor exact = linear_cross_entropy(x, w, {}, t), loss = linear_cross_entropy(narrow, w2, {}, t);
  EXPECT_NEAR(loss.item(), exact.item(), 2e-3 * exact.item());
  backward(exact);
  backward(loss);
  expect_close_product(cast(narrow.grad(), DType::f32).to_vector<float>(), x.grad().to_vector<float>());
  expect_close_product(w2.grad().to_vector<float>(), w.grad().to_vector<float>());
}

}  // namespace
}  // namespace heed::test
