// Linear layers of few rows, with norm, activation, factor and residual in one kernel, against the same in double.
#include "heed/ops/row_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct RowSizes {
  int64_t rows, I, O;
};
// One row and many columns; several vectors per thread; more columns than warps; every number of rows; few columns.
const RowSizes kRowSizes[] = {{1, 768, 300}, {1, 3072, 90}, {1, 392, 8203}, {2, 8, 5},
                              {3, 96, 33},   {4, 1032, 17}, {5, 16, 1},     {8, 3072, 20}};

double after_activation(Activation activation, double x) {
  return activation == Activation::gelu_tanh ? 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
         : activation == Activation::silu    ? x / (1 + std::exp(-x))
                                             : x;
}

// The weight as the kernel reads it, and its values.
struct StoredWeight {
  Tensor weight, scales;
  std::vector<double> values;

  StoredWeight(const Tensor& from, DType dtype) {
    const int64_t O = from.size(0), I = from.size(1);
    if (dtype != DType::u8) {
      weight = cast(from, dtype);
      for (const float x : weight.to_vector<float>()) values.push_back(x);
      return;
    }
    const int64_t stride = (I + 63) / 64 * 64;
    std::vector<uint8_t> bytes(static_cast<size_t>(O * stride), 0);
    std::vector<float> each(static_cast<size_t>(O));
    const std::vector<float> numbers = from.to_vector<float>();
    for (int64_t o = 0; o < O; ++o) {
      const float scale = each[static_cast<size_t>(o)] = 0.03f + 0.001f * static_cast<float>(o % 7);
      for (int64_t i = 0; i < I; ++i) {
        const auto byte = static_cast<int8_t>(std::lround(std::clamp(numbers[static_cast<size_t>(o * I + i)] / scale, -128.0f, 127.0f)));
        bytes[static_cast<size_t>(o * stride + i)] = static_cast<uint8_t>(byte);
        values.push_back(static_cast<double>(byte) * scale);
      }
    }
    weight = Tensor::from(bytes, {O, stride}, from.device());
    scales = Tensor::from(each, {O}, from.device());
  }
};

enum class RowNorm { none, layer, root_mean_square };

void check_row_layer(const RowSizes& z, DType dtype, RowNorm norm, Activation activation, bool factor) {
  const StoredWeight w(normal_input({z.O, z.I}, 1), dtype);
  RowLayer layer{.weight = w.weight, .scales = w.scales, .bias = normal_input({z.O}, 2), .eps = 1e-3f, .activation = activation};
  if (norm != RowNorm::none) layer.norm_weight = normal_input({z.I}, 3);
  if (norm == RowNorm::layer) layer.norm_bias = normal_input({z.I}, 4);
  const Tensor x = normal_input({z.rows, z.I}, 5), out = normal_input({z.rows, z.O}, 6), factor_rows = normal_input({z.rows, z.O}, 7);
  const Doubles in(x), bias(layer.bias), before(out), factors(factor_rows);
  const Doubles weight = norm == RowNorm::none ? Doubles({0}) : Doubles(layer.norm_weight),
                shift = norm == RowNorm::layer ? Doubles(layer.norm_bias) : Doubles({z.I});
  std::vector<double> expected;
  double largest = 0;
  for (int64_t r = 0; r < z.rows; ++r) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < z.I; ++i) mean += norm == RowNorm::layer ? in[r * z.I + i] / static_cast<double>(z.I) : 0;
    for (int64_t i = 0; i < z.I; ++i) square += std::pow(in[r * z.I + i] - mean, 2) / static_cast<double>(z.I);
    for (int64_t o = 0; o < z.O; ++o) {
      double sum = bias[o];
      for (int64_t i = 0; i < z.I; ++i) {
        const double each = in[r * z.I + i];
        sum += w.values[static_cast<size_t>(o * z.I + i)] *
               (norm == RowNorm::none ? each : (each - mean) / std::sqrt(square + 1e-3) * weight[i] + shift[i]);
      }
      expected.push_back(after_activation(activation, sum) * (factor ? factors[r * z.O + o] : 1) + before[r * z.O + o]);
      largest = std::max(largest, std::abs(expected.back()));
    }
  }
  row_linear(layer, x, out, factor ? factor_rows : Tensor(), out);
  const std::vector<float> got = out.to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-6 * largest) << i;
}

TEST(RowLinear, matches_the_formulas) {
  const NoGrad quiet;
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8})
    for (const RowSizes& z : kRowSizes) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << ' ' << z.rows << " x " << z.I << " x " << z.O);
      check_row_layer(z, dtype, RowNorm::none, Activation::none, false);
      check_row_layer(z, dtype, RowNorm::layer, Activation::gelu_tanh, false);
      check_row_layer(z, dtype, RowNorm::root_mean_square, Activation::silu, true);
    }
}

TEST(RowLinear, is_deterministic) {
  const NoGrad quiet;
  const RowLayer layer{.weight = cast(normal_input({900, 1024}, 1), DType::bf16)};
  const Tensor x = normal_input({3, 1024}, 2), first = Tensor::empty({3, 900}, test_device()),
               second = Tensor::empty({3, 900}, test_device());
  row_linear(layer, x, first);
  row_linear(layer, x, second);
  EXPECT_EQ(first.to_vector<float>(), second.to_vector<float>());
}

TEST(RowLinear, reports_invalid_arguments) {
  const RowLayer layer{.weight = normal_input({4, 16}, 1)};
  const Tensor out = Tensor::zeros({2, 4}, test_device());
  expect_error([&] { row_linear(layer, normal_input({2, 8}, 1), out); }, "row_linear: x has shape (2, 8), the weight (4, 16)");
  expect_error([&] { row_linear(layer, normal_input({9, 16}, 1), out); }, "expected (rows, I) with up to 8 rows");
  expect_error(
      [&] {
        row_linear(layer, normal_input({3, 16}, 1), out);
      },
      "row_linear: a result or summand of shape (2, 4), expected (3, 4)");
  const Tensor x = normal_input({2, 16}, 1);
  const auto report = [&](const RowLayer& wrong, const char* message) { expect_error([&] { row_linear(wrong, x, out); }, message); };
  report({.weight = layer.weight, .bias = normal_input({16}, 1)}, "row_linear: scales or a bias of shape (16), expected (4)");
  report({.weight = layer.weight, .norm_weight = normal_input({4}, 1)}, "row_linear: a norm of shape (4), expected (16)");
  report({.weight = cast(layer.weight, DType::f16)}, "row_linear: a weight of f16");
}

}  // namespace
}  // namespace heed::test
