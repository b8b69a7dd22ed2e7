// The gradients of an activation and of its bias in one kernel, against the layer and the activation as two ops: many rows, and numbers of
// columns that are multiples of a vector and others.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct Gradients {
  std::vector<float> x, b;
};

// y = activation(x w^T + b), or only x w^T + b.
Gradients gradients_of(const Tensor& input, const Tensor& weight, const Tensor& bias, Activation activation,
                       const std::function<Tensor(const Tensor&)>& after, const Tensor& seed) {
  const Tensor x = input.detach().require_grad(), b = bias.detach().require_grad();
  const Tensor y = linear(x, weight, b, activation);
  backward(after ? after(y) : y, seed);
  return {cast(x.grad(), DType::f32).to_vector<float>(), b.grad().to_vector<float>()};
}

void expect_same(Activation activation, const std::function<Tensor(const Tensor&)>& function, int64_t rows, int64_t columns, DType dtype) {
  SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", " << rows << " x " << columns << ", "
                                  << name_of(dtype));
  const auto input = [&](const Shape& shape, uint64_t seed) { return normal_input(shape, seed).to(test_device()); };
  const Tensor x = cast(input({rows, 6}, 1), dtype), w = input({columns, 6}, 2), b = input({columns}, 3),
               seed = cast(input({rows, columns}, 4), dtype);
  const Gradients found = gradients_of(x, w, b, activation, nullptr, seed);
  const Gradients plain = gradients_of(x, w, b, Activation::none, function, seed);
  // The two ops round the gradient of z to bf16 before it is summed: by half a unit in the last place, of values up to 8.
  const double rounding = dtype == DType::bf16 ? 1.0 / 512 : 1e-7, most = 8 * rounding * std::sqrt(static_cast<double>(rows)) * 4;
  ASSERT_EQ(found.b.size(), plain.b.size());
  for (size_t i = 0; i < found.b.size(); ++i) {
    if (test_device() == kCpu)
      EXPECT_EQ(found.b[i], plain.b[i]) << i;
    else
      EXPECT_NEAR(found.b[i], plain.b[i], most + 1e-5) << i;
  }
  ASSERT_EQ(found.x.size(), plain.x.size());
  for (size_t i = 0; i < found.x.size(); ++i)
    EXPECT_NEAR(found.x[i], plain.x[i], 16 * std::sqrt(static_cast<double>(columns)) * rounding) << i;
}

TEST(ActivationBackward, matches_separate_layer_and_activation) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
#define HEED_EXPECT(Formula, function) \
  expect_same(                         \
      Activation::function, [](const Tensor& z) { return function(z); }, 70, 24, dtype);
    HEED_ACTIVATIONS(HEED_EXPECT)
#undef HEED_EXPECT
    for (const auto& [rows, columns] : {std::pair(1, 8), std::pair(1300, 264), std::pair(4099, 40), std::pair(1300, 37)})
      expect_same(
          Activation::gelu, [](const Tensor& z) { return gelu(z); }, rows, columns, dtype);
  }
}

TEST(ActivationBackward, is_deterministic) {
  const auto input = [&](const Shape& shape, uint64_t seed) { return normal_input(shape, seed).to(test_device()); };
  const Tensor x = input({3000, 6}, 1), w = input({520, 6}, 2), b = input({520}, 3), seed = input({3000, 520}, 4);
  const Gradients first = gradients_of(x, w, b, Activation::gelu, nullptr, seed);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(gradients_of(x, w, b, Activation::gelu, nullptr, seed).b, first.b);
}

TEST(ActivationBackward, accepts_zero_rows) {
  const auto zeros = [&](const Shape& shape) { return Tensor::zeros(shape, DType::f32, test_device()); };
  const Gradients found = gradients_of(zeros({0, 6}), zeros({8, 6}), zeros({8}), Activation::gelu, nullptr, zeros({0, 8}));
  EXPECT_EQ(found.b, std::vector<float>(8, 0.0f));
}

}  // namespace
}  // namespace heed::test
