#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

BatchNorm fresh_state(int64_t channels, bool training) {
  BatchNorm state{.running_mean = Tensor::empty({channels}, test_device()),
                  .running_variance = Tensor::empty({channels}, test_device()),
                  .training = training};
  copy_into(normal_input({channels}, 8), state.running_mean);
  copy_into(positive_input({channels}, 9), state.running_variance);
  return state;
}

struct Channel {
  double mean = 0, variance = 0;
};

Channel moments(const Doubles& x, int64_t channel) {
  const int64_t pixels = x.size() / (x.dim(0) * x.dim(1)), values = x.dim(0) * pixels;
  Channel found;
  const auto each = [&](const auto& visit) {
    for (int64_t image = 0; image < x.dim(0); ++image)
      for (int64_t pixel = 0; pixel < pixels; ++pixel) visit(x[(image * x.dim(1) + channel) * pixels + pixel]);
  };
  each([&](double value) { found.mean += value / static_cast<double>(values); });
  each([&](double value) { found.variance += (value - found.mean) * (value - found.mean) / static_cast<double>(values); });
  return found;
}

Doubles batch_norm_reference(const Many& in, bool training) {
  const Doubles& x = in[0];
  const BatchNorm state = fresh_state(x.dim(1), training);
  const Doubles mean(state.running_mean), variance(state.running_variance);
  const int64_t pixels = x.size() / (x.dim(0) * x.dim(1));
  std::vector<Channel> channels;
  for (int64_t c = 0; c < x.dim(1); ++c) channels.push_back(training ? moments(x, c) : Channel{mean[c], variance[c]});
  Doubles y(x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = i / pixels % x.dim(1);
    const Channel& found = channels[static_cast<size_t>(c)];
    y[i] = (x[i] - found.mean) / std::sqrt(found.variance + 1e-5) * in[1][c] + in[2][c];
  }
  return y;
}

Case make_batch_norm_case(const std::string& what, const Shape& x, bool training) {
  return {.what = what + (training ? ", training" : ", evaluation"),
          .inputs = {normal_input(x, 1), normal_input({x[1]}, 2), normal_input({x[1]}, 3)},
          .run = [training](const Tensors& in) { return Tensors{batch_norm(in[0], in[1], in[2], fresh_state(in[0].size(1), training))}; },
          .reference = [training](const Many& in) { return Many{batch_norm_reference(in, training)}; }};
}

std::string batch_norm_error(const Shape& x, const Shape& w, const Shape& b, const BatchNorm& state) {
  try {
    batch_norm(Tensor::zeros(x, test_device()), Tensor::zeros(w, test_device()), Tensor::zeros(b, test_device()), state);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

template <>
std::vector<Case> cases<Op::batch_norm>() {
  std::vector<Case> all;
  for (bool training : {true, false})
    for (const auto& [what, shape] : std::vector<std::pair<std::string, Shape>>{{"images", {3, 4, 5, 4}},
                                                                                {"odd images", {2, 3, 5, 7}},
                                                                                {"one image", {1, 2, 3, 3}},
                                                                                {"columns", {9, 5}},
                                                                                {"columns with axes of one", {6, 3, 1, 1}},
                                                                                {"sequences", {3, 2, 17}},
                                                                                {"one channel", {4, 1, 2, 2}}})
      all.push_back(make_batch_norm_case(what, shape, training));
  all.push_back(make_batch_norm_case("one row", {1, 4}, false));
  return all;
}

// Several blocks per channel, the last one smaller; the mean is large beside the deviation.
TEST(BatchNorm, combines_statistics_of_blocks_accurately) {
  const Shape shape{37, 3, 17, 16};
  std::vector<float> values = normal_input(shape).to_vector<float>();
  for (float& value : values) value += 100;
  const Tensor x = Tensor::from(values, shape, test_device()), w = normal_input({3}, 2), b = normal_input({3}, 3),
               g = normal_input(shape, 4);
  const Doubles wide(x), gradient(g), weight(w);
  const Doubles expected = batch_norm_reference({wide, weight, Doubles(b)}, true);
  const int64_t pixels = 17 * 16;
  const double count = 37 * pixels;
  std::vector<float> first_y, first_dx;
  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    const Tensor leaf = x.detach().require_grad(), scale = w.detach().require_grad();
    const Tensor y = batch_norm(leaf, scale, b, {});
    backward(y, g);
    const std::vector<float> got = y.to_vector<float>(), dx = leaf.grad().to_vector<float>(), dw = scale.grad().to_vector<float>();
    if (other > 1) {
      EXPECT_EQ(got, first_y);
      EXPECT_EQ(dx, first_dx);
      continue;
    }
    first_y = got;
    first_dx = dx;
    for (int64_t c = 0; c < 3; ++c) {
      const Channel found = moments(wide, c);
      const double deviation = std::sqrt(found.variance + 1e-5);
      double total = 0, product = 0;
      const auto each = [&](const auto& visit) {
        for (int64_t image = 0; image < 37; ++image)
          for (int64_t pixel = 0; pixel < pixels; ++pixel) visit((image * 3 + c) * pixels + pixel);
      };
      each([&](int64_t i) {
        total += gradient[i];
        product += gradient[i] * (wide[i] - found.mean) / deviation;
      });
      EXPECT_NEAR(dw[static_cast<size_t>(c)], product, 1e-5 * (std::abs(product) + 100));
      each([&](int64_t i) {
        const double normal = (wide[i] - found.mean) / deviation;
        ASSERT_NEAR(got[static_cast<size_t>(i)], expected[i], 3e-5);
        ASSERT_NEAR(dx[static_cast<size_t>(i)], weight[c] / deviation * (gradient[i] - total / count - normal * product / count), 3e-5);
      });
    }
  }
  set_thread_count(threads);
}

TEST(BatchNorm, only_training_updates_the_running_statistics) {
  const Tensor x = normal_input({4, 3, 2, 3}), w = Tensor::ones({3}, test_device()), b = Tensor::zeros({3}, test_device());
  BatchNorm state = fresh_state(3, true);
  state.momentum = 0.25f;
  const Doubles mean(state.running_mean), variance(state.running_variance);
  batch_norm(x, w, b, state);
  for (int64_t c = 0; c < 3; ++c) {
    const Channel found = moments(Doubles(x), c);
    EXPECT_NEAR(Doubles(state.running_mean)[c], 0.75 * mean[c] + 0.25 * found.mean, 1e-6);
    EXPECT_NEAR(Doubles(state.running_variance)[c], 0.75 * variance[c] + 0.25 * found.variance * 24 / 23, 1e-6);
  }
  const std::vector<float> before = state.running_mean.to_vector<float>();
  state.training = false;
  batch_norm(x, w, b, state);
  EXPECT_EQ(state.running_mean.to_vector<float>(), before);
}

// Results and gradients that are stored as bf16 are those of f32, rounded once; statistics and gradients of weights are f32.
TEST(BatchNorm, supports_bf16) {
  for (const bool training : {true, false})
    for (const Shape& shape : {Shape{5, 3, 7, 5}, Shape{9, 4}}) {
      const int64_t C = shape[1];
      const Tensor x = converted(normal_input(shape), DType::bf16), bias = normal_input({C}, 3);
      const Tensor g = converted(normal_input(shape, 4), DType::bf16);
      const Tensor narrow = x.detach().require_grad(), wide = converted(x, DType::f32).require_grad();
      const Tensor narrow_weight = normal_input({C}, 2).require_grad(), wide_weight = normal_input({C}, 2).require_grad();
      const BatchNorm narrow_state = fresh_state(C, training), wide_state = fresh_state(C, training);
      const Tensor y = batch_norm(narrow, narrow_weight, bias, narrow_state), expected = batch_norm(wide, wide_weight, bias, wide_state);
      EXPECT_EQ(y.dtype(), DType::bf16);
      EXPECT_EQ(y.to_vector<float>(), converted(expected, DType::bf16).to_vector<float>());
      EXPECT_EQ(narrow_state.running_variance.to_vector<float>(), wide_state.running_variance.to_vector<float>());
      backward(y, g);
      backward(expected, converted(g, DType::f32));
      EXPECT_EQ(narrow.grad().dtype(), DType::bf16);
      EXPECT_EQ(narrow.grad().to_vector<float>(), converted(wide.grad(), DType::bf16).to_vector<float>());
      EXPECT_EQ(narrow_weight.grad().to_vector<float>(), wide_weight.grad().to_vector<float>());
    }
}

TEST(BatchNorm, accepts_an_empty_batch_in_evaluation) {
  EXPECT_EQ(batch_norm(Tensor::zeros({0, 3, 2, 2}, test_device()), Tensor::ones({3}, test_device()), Tensor::zeros({3}, test_device()),
                       fresh_state(3, false))
                .shape(),
            (Shape{0, 3, 2, 2}));
}

TEST(BatchNorm, reports_invalid_arguments) {
  EXPECT_EQ(batch_norm_error({3}, {3}, {3}, {}), "batch_norm: x has shape (3), expected (B, C, ...)");
  EXPECT_EQ(batch_norm_error({2, 3}, {2}, {3}, {}), "batch_norm: the weight has shape (2), x 3 channels");
  EXPECT_EQ(batch_norm_error({2, 3}, {3}, {4}, {}), "batch_norm: the bias has shape (4), x 3 channels");
  EXPECT_EQ(batch_norm_error({2, 3}, {3}, {3}, fresh_state(2, true)), "batch_norm: the running statistics have shape (2), x 3 channels");
  BatchNorm nothing;
  nothing.training = false;
  EXPECT_EQ(batch_norm_error({2, 3}, {3}, {3}, nothing), "batch_norm: evaluation needs the running mean and variance");
  EXPECT_EQ(batch_norm_error({1, 3}, {3}, {3}, {}), "batch_norm: 1 values in a channel, training needs 2 or more");
  BatchNorm narrow = fresh_state(3, true);
  narrow.running_mean = converted(narrow.running_mean, DType::bf16);
  EXPECT_EQ(batch_norm_error({2, 3}, {3}, {3}, narrow), "batch_norm: the running statistics are dense bf16, expected dense f32");
}

}  // namespace heed::test
