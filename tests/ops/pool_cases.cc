#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/cases.h"

namespace heed::test {
namespace {

// The largest pixel under the window at every position.
Doubles pool_reference(const Doubles& x, const Pool2d& o) {
  const int64_t rows = (x.dim(2) + 2 * o.padding[0] - o.kernel[0]) / o.stride[0] + 1;
  const int64_t columns = (x.dim(3) + 2 * o.padding[1] - o.kernel[1]) / o.stride[1] + 1;
  Doubles y(Shape{x.dim(0), x.dim(1), rows, columns});
  for_each_index(y.shape, [&](const Shape& at) {
    double largest = -HUGE_VAL;
    for (int64_t p = 0; p < o.kernel[0]; ++p)
      for (int64_t q = 0; q < o.kernel[1]; ++q) {
        const int64_t row = at[2] * o.stride[0] - o.padding[0] + p, column = at[3] * o.stride[1] - o.padding[1] + q;
        if (row >= 0 && row < x.dim(2) && column >= 0 && column < x.dim(3))
          largest = std::max(largest, x[flat(x.shape, {at[0], at[1], row, column})]);
      }
    y[flat(y.shape, at)] = largest;
  });
  return y;
}

Case pool_case(const std::string& what, const Shape& x, const Pool2d& o) {
  return {.what = what,
          .inputs = {distinct_input(x)},
          .run = [o](const Tensors& in) { return Tensors{max_pool2d(in[0], o)}; },
          .reference = [o](const Many& in) { return Many{pool_reference(in[0], o)}; }};
}

std::string message(const Shape& x, const Pool2d& o) {
  try {
    max_pool2d(Tensor::zeros(x, test_device()), o);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

template <>
std::vector<Case> cases<Op::max_pool2d>() {
  return {
      pool_case("2x2", {2, 3, 6, 4}, {}),
      pool_case("odd sizes leave pixels over", {1, 2, 7, 5}, {}),
      pool_case("overlapping windows with padding", {2, 2, 5, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}),
      pool_case("stride 1", {1, 2, 4, 19}, {.kernel = {2, 3}, .stride = {1, 1}}),
      pool_case("gaps between windows", {1, 1, 9, 8}, {.kernel = {2, 1}, .stride = {3, 4}, .padding = {1, 0}}),
      pool_case("the kernel is larger than the image", {2, 1, 3, 2}, {.kernel = {5, 4}, .stride = {2, 1}, .padding = {2, 3}}),
      pool_case("the whole image", {2, 3, 4, 5}, {.kernel = {4, 5}, .stride = {4, 5}}),
      pool_case("one pixel", {1, 1, 1, 1}, {.kernel = {1, 1}, .stride = {1, 1}}),
  };
}

// Enough planes for several tasks. All columns are equal, so the maximum of every window is known.
TEST(Pool2d, handles_many_planes) {
  const int64_t planes = 300;
  std::vector<float> values;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t pixel = 0; pixel < 64; ++pixel) values.push_back(static_cast<float>(plane + pixel / 8 % 2));
  const Tensor x = Tensor::from(values, {3, 100, 8, 8}, test_device()).require_grad();
  const Tensor y = max_pool2d(x, {});
  const std::vector<float> got = y.to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<float>(i / 16 + 1));
  backward(y, Tensor::ones(y.shape(), test_device()));
  double total = 0;
  for (float gradient : x.grad().to_vector<float>()) total += static_cast<double>(gradient);
  EXPECT_EQ(total, planes * 16);
}

// Results and gradients that are stored as bf16 are those of f32, rounded once.
TEST(Pool2d, supports_bf16) {
  const Pool2d overlapping{.kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}};
  const Tensor x = converted(normal_input({2, 3, 7, 19}), DType::bf16);
  const Tensor narrow = x.detach().require_grad(), wide = converted(x, DType::f32).require_grad();
  const Tensor y = max_pool2d(narrow, overlapping), expected = max_pool2d(wide, overlapping);
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(y.to_vector<float>(), converted(expected, DType::bf16).to_vector<float>());
  const Tensor g = converted(normal_input(y.shape(), 2), DType::bf16);
  backward(y, g);
  backward(expected, converted(g, DType::f32));
  EXPECT_EQ(narrow.grad().dtype(), DType::bf16);
  EXPECT_EQ(narrow.grad().to_vector<float>(), converted(wide.grad(), DType::bf16).to_vector<float>());
}

TEST(Pool2d, accepts_an_empty_batch) { EXPECT_EQ(max_pool2d(Tensor::zeros({0, 2, 4, 4}, test_device())).shape(), (Shape{0, 2, 2, 2})); }

TEST(Pool2d, the_first_of_equal_maxima_gets_the_gradient) {
  const Tensor x = Tensor::from(std::vector<float>{1, 3, 3, 3, /**/ -2, -2, -2, -2}, {1, 2, 2, 2}, test_device()).require_grad();
  const Tensor y = max_pool2d(x);
  backward(y, Tensor::from(std::vector<float>{5, 7}, {1, 2, 1, 1}, test_device()));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 5, 0, 0, 7, 0, 0, 0}));
}

TEST(Pool2d, propagates_nan) {
  for (size_t place = 0; place < 4; ++place) {
    std::vector<float> values{1, 4, 2, 3};
    values[place] = NAN;
    EXPECT_TRUE(std::isnan(max_pool2d(Tensor::from(values, {1, 1, 2, 2}, test_device())).item())) << place;
  }
}

TEST(Pool2d, prefers_minus_infinity_to_padding) {
  const Tensor x = Tensor::full({1, 1, 2, 3}, -HUGE_VAL, test_device()).require_grad();
  const Tensor y = max_pool2d(x, {.kernel = {3, 3}, .stride = {1, 2}, .padding = {1, 1}});
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(4, -INFINITY));
  backward(y, Tensor::from(std::vector<float>{1, 2, 4, 8}, y.shape(), test_device()));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{5, 10, 0, 0, 0, 0}));
}

TEST(Pool2d, reports_invalid_arguments) {
  EXPECT_EQ(message({2, 4, 4}, {}), "max_pool2d: x has shape (2, 4, 4), expected (B, C, Y, X)");
  EXPECT_EQ(message({1, 1, 4, 1}, {}), "max_pool2d: the window spans 2 along X, the padded image 1");
  EXPECT_EQ(message({1, 1, 4, 4}, {.kernel = {0, 2}}), "max_pool2d: the kernel is 0 x 2, expected 1 to 1048576");
  EXPECT_EQ(message({1, 1, 4, 4}, {.stride = {2, 0}}), "max_pool2d: the stride is 2 x 0, expected 1 to 1048576");
  EXPECT_EQ(message({1, 1, 4, 4}, {.padding = {2, 0}}), "max_pool2d: the padding 2 is not smaller than the kernel 2");
}

}  // namespace heed::test
