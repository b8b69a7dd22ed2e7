#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

// Calls tap(x index, w index, y index) for every product in the convolution.
void for_each_tap(const Shape& x, const Shape& w, const Shape& y, const Conv2d& o,
                  const std::function<void(int64_t, int64_t, int64_t)>& tap) {
  const int64_t out_per_group = w[0] / o.groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t c = 0; c < y[1]; ++c)
      for (int64_t i = 0; i < y[2]; ++i)
        for (int64_t j = 0; j < y[3]; ++j)
          for (int64_t k = 0; k < w[1]; ++k)
            for (int64_t p = 0; p < w[2]; ++p)
              for (int64_t q = 0; q < w[3]; ++q) {
                const int64_t row = i * o.stride[0] - o.padding[0] + p * o.dilation[0];
                const int64_t column = j * o.stride[1] - o.padding[1] + q * o.dilation[1];
                if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                const int64_t channel = c / out_per_group * w[1] + k;
                tap(((n * x[1] + channel) * x[2] + row) * x[3] + column, ((c * w[1] + k) * w[2] + p) * w[3] + q,
                    ((n * y[1] + c) * y[2] + i) * y[3] + j);
              }
}

Shape result_shape(const Shape& x, const Shape& w, const Conv2d& o) {
  const auto places = [&](int axis) {
    const auto a = static_cast<size_t>(axis);
    return (x[axis + 2] + 2 * o.padding[a] - (w[axis + 2] - 1) * o.dilation[a] - 1) / o.stride[a] + 1;
  };
  return {x[0], w[0], places(0), places(1)};
}

Doubles conv_reference(const Many& in, const Conv2d& o) {
  Doubles y(result_shape(in[0].shape, in[1].shape, o));
  if (in.size() > 2)
    for (int64_t i = 0; i < y.size(); ++i) y[i] = in[2][i / (y.dim(2) * y.dim(3)) % y.dim(1)];
  for_each_tap(in[0].shape, in[1].shape, y.shape, o, [&](int64_t x, int64_t w, int64_t out) { y[out] += in[0][x] * in[1][w]; });
  return y;
}

Case make_conv_case(const std::string& what, const Shape& x, const Shape& w, const Conv2d& o, bool bias = true) {
  Tensors inputs{normal_input(x, 1), normal_input(w, 2)};
  if (bias) inputs.push_back(normal_input({w[0]}, 3));
  return {.what = what,
          .inputs = inputs,
          .run = [o](const Tensors& in) { return Tensors{conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o)}; },
          .reference = [o](const Many& in) { return Many{conv_reference(in, o)}; }};
}

// Values and gradients against sums in double, and the same bits for any number of threads. For sizes with several tasks,
// which are too large for finite differences.
void check_large(const Shape& x_shape, const Shape& w_shape, const Conv2d& o) {
  const Tensor x = normal_input(x_shape, 1), w = normal_input(w_shape, 2), b = normal_input({w_shape[0]}, 3);
  const Tensor g = normal_input(result_shape(x_shape, w_shape, o), 4);
  const Many in{Doubles(x), Doubles(w), Doubles(b)};
  const Doubles gradient(g);
  Many expected{conv_reference(in, o), Doubles(x_shape), Doubles(w_shape), Doubles(b.shape())};
  for_each_tap(x_shape, w_shape, g.shape(), o, [&](int64_t i, int64_t j, int64_t out) {
    expected[1][i] += gradient[out] * in[1][j];
    expected[2][j] += gradient[out] * in[0][i];
  });
  for (int64_t i = 0; i < gradient.size(); ++i) expected[3][i / (g.size(2) * g.size(3)) % g.size(1)] += gradient[i];

  std::vector<std::vector<float>> first;
  const int threads = thread_count();
  for (int count : {1, 2, 7}) {
    set_thread_count(count);
    Tensors leaves{x.detach().require_grad(), w.detach().require_grad(), b.detach().require_grad()};
    const Tensor y = conv2d(leaves[0], leaves[1], leaves[2], o);
    backward(y, g);
    const Tensors results{y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
    for (size_t k = 0; k < results.size(); ++k) {
      const std::vector<float> values = results[k].to_vector<float>();
      if (count > 1) {
        EXPECT_EQ(values, first[k]) << "result " << k << " with " << count << " threads";
        continue;
      }
      first.push_back(values);
      double largest = 0, error = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(expected[k].values[i]));
        error = std::max(error, std::abs(expected[k].values[i] - static_cast<double>(values[i])));
      }
      EXPECT_LE(error, 3e-6 * largest) << "result " << k;
    }
  }
  set_thread_count(threads);
}

std::string conv2d_error(const Shape& x, const Shape& w, const Shape& b, const Conv2d& o) {
  try {
    conv2d(Tensor::zeros(x, test_device()), Tensor::zeros(w, test_device()), Tensor::zeros(b, test_device()), o);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

template <>
std::vector<Case> cases<Op::conv2d>() {
  return {
      make_conv_case("3x3", {2, 3, 5, 6}, {4, 3, 3, 3}, {}),
      make_conv_case("without bias", {2, 3, 5, 6}, {4, 3, 3, 3}, {}, false),
      make_conv_case("1x1", {3, 5, 4, 3}, {6, 5, 1, 1}, {}),
      make_conv_case("1x1, stride 2", {2, 5, 5, 4}, {3, 5, 1, 1}, {.stride = {2, 2}}),
      make_conv_case("one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}, {}),
      make_conv_case("stride and padding that leave pixels over", {2, 2, 8, 7}, {3, 2, 3, 2}, {.stride = {3, 2}, .padding = {1, 0}}),
      make_conv_case("dilation", {1, 2, 9, 8}, {3, 2, 3, 2}, {.padding = {2, 1}, .dilation = {2, 3}}),
      make_conv_case("groups", {2, 6, 5, 4}, {4, 3, 3, 3}, {.padding = {1, 1}, .groups = 2}),
      make_conv_case("a group per channel", {2, 5, 6, 5}, {5, 1, 3, 3}, {.stride = {2, 1}, .padding = {1, 1}, .groups = 5}),
      make_conv_case("two outputs for a group per channel", {1, 3, 4, 4}, {6, 1, 2, 2}, {.groups = 3}, false),
      make_conv_case("the kernel is larger than the image", {2, 2, 2, 3}, {3, 2, 5, 5}, {.padding = {2, 1}}),
      make_conv_case("more padding than kernel", {1, 2, 3, 2}, {2, 2, 2, 1}, {.padding = {3, 2}}),
      make_conv_case("patches", {2, 3, 8, 8}, {5, 3, 4, 4}, {.stride = {4, 4}}),
      make_conv_case("sixteen channels and over", {1, 17, 3, 3}, {19, 17, 2, 2}, {}),
  };
}

TEST(Conv2d, matches_the_reference_for_every_split_of_batch_and_channels) {
  check_large({19, 16, 8, 8}, {32, 16, 3, 3}, {.padding = {1, 1}});   // slabs of images, the last one smaller
  check_large({2, 32, 16, 15}, {88, 32, 3, 3}, {.padding = {1, 1}});  // pieces of channels, the last one smaller
  check_large({1, 96, 12, 12}, {64, 96, 3, 3}, {.padding = {1, 1}});  // pieces of input channels
  check_large({5, 32, 12, 12}, {64, 8, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}, .groups = 4});
  check_large({1, 3, 96, 96}, {192, 3, 16, 16}, {.stride = {16, 16}});  // patches
}

TEST(Conv2d, accepts_an_empty_batch) {
  const Tensor x = Tensor::zeros({0, 3, 5, 5}, test_device()).require_grad(), w = normal_input({4, 3, 3, 3}).require_grad();
  const Tensor b = normal_input({4}).require_grad();
  const Tensor y = conv2d(x, w, b);
  EXPECT_EQ(y.shape(), (Shape{0, 4, 3, 3}));
  backward(y, Tensor::zeros(y.shape(), test_device()));
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(4 * 3 * 3 * 3));
  EXPECT_EQ(b.grad().to_vector<float>(), std::vector<float>(4));
}

TEST(Conv2d, reports_invalid_arguments) {
  EXPECT_EQ(conv2d_error({3, 5, 5}, {4, 3, 3, 3}, {4}, {}), "conv2d: x has shape (3, 5, 5), expected (B, C, Y, X)");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 27}, {4}, {}), "conv2d: the weight has shape (4, 27), expected (O, C / groups, KY, KX)");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 2, 3, 3}, {4}, {}), "conv2d: the weight takes 2 channels, x has 3 in 1 groups");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 3, 3, 3}, {3}, {}), "conv2d: the bias has shape (3), the weight 4 output channels");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 1, 3, 3}, {4}, {.groups = 2}), "conv2d: 2 groups do not divide 3 input channels");
  EXPECT_EQ(conv2d_error({1, 4, 5, 5}, {3, 2, 3, 3}, {3}, {.groups = 2}), "conv2d: 2 groups do not divide 3 output channels");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 3, 3, 3}, {4}, {.groups = 0}), "conv2d: 0 groups, expected 1 or more");
  EXPECT_EQ(conv2d_error({1, 0, 5, 5}, {4, 0, 3, 3}, {4}, {}), "conv2d: 0 input and 4 output channels, expected 1 or more");
  EXPECT_EQ(conv2d_error({1, 3, 5, 4}, {4, 3, 3, 3}, {4}, {.dilation = {1, 2}}), "conv2d: the window spans 5 along X, the padded image 4");
  EXPECT_EQ(conv2d_error({1, 3, 5, 0}, {4, 3, 3, 3}, {4}, {.padding = {1, 2}}), "conv2d: the image is 5 x 0, expected 1 or more");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 3, 0, 3}, {4}, {}), "conv2d: the kernel is 0 x 3, expected 1 to 1048576");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 3, 3, 3}, {4}, {.stride = {1, 0}}), "conv2d: the stride is 1 x 0, expected 1 to 1048576");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 3, 3, 3}, {4}, {.padding = {-1, 0}}), "conv2d: the padding is -1 x 0, expected 0 to 1048576");
  EXPECT_EQ(conv2d_error({1, 3, 5, 5}, {4, 3, 3, 3}, {4}, {.dilation = {0, 1}}), "conv2d: the dilation is 0 x 1, expected 1 to 1048576");
}

}  // namespace heed::test
