// Every function of the list of elementwise functions: values and derivatives against definitions in double, the derivative in double
// against central differences, threads, strides and half precision through check_case. A function without a reference does not compile.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/cases.h"
#include "tests/ops/elementwise_reference.h"

namespace heed::test {
namespace {

struct Function {
  const char* name;
  Tensor (*run)(const Tensor&);
  double (*f)(double);
  double (*df)(double);
  bool positive;  // defined for positive numbers only
};

std::vector<Function> every_function() {
  std::vector<Function> all;
#define HEED_LISTED(Formula, function)                                                \
  {                                                                                   \
    const Reference reference = reference_of(Elementwise::function);                  \
    const bool positive = std::isnan(reference.f(-1.0));                              \
    all.push_back({#function, &heed::function, reference.f, reference.df, positive}); \
  }
  HEED_ELEMENTWISE(HEED_LISTED)
#undef HEED_LISTED
  return all;
}

class EveryFunction : public testing::TestWithParam<Function> {};

TEST_P(EveryFunction, matches_its_reference) {
  const Function f = GetParam();
  for (const Shape& shape : {Shape{1}, Shape{}, Shape{3, 5}, Shape{2, 1, 37}, Shape{67}}) {
    Tensor x = f.positive ? positive_input(shape) : scale(distinct_input(shape), 4);
    check_case(f.name, {.what = "shape of rank " + std::to_string(shape.rank()),
                        .inputs = {x},
                        .run = [&](const Tensors& in) { return Tensors{f.run(in[0])}; },
                        .reference =
                            [&](const Many& in) {
                              Doubles out = in[0];
                              for (double& value : out.values) value = f.f(value);
                              return Many{out};
                            }});
  }
}

// Relative errors over the whole range, so that large values do not hide an error in a tail. The effect of rounding x is
// tolerated: no formula in f32 can do better where the function is steep.
TEST_P(EveryFunction, is_accurate_over_its_range) {
  const Function f = GetParam();
  std::vector<float> points;
  for (float x = f.positive ? 1e-4f : -12.0f; x < 12; x += 0.00137f) points.push_back(x);
  const int64_t n = static_cast<int64_t>(points.size());
  Tensor x = Tensor::from(points, {n}, test_device());
  x.require_grad();
  const Tensor y = f.run(x);
  backward(y, Tensor::ones({n}, test_device()));
  const auto values = y.to_vector<float>(), slopes = x.grad().to_vector<float>();
  for (size_t i = 0; i < points.size(); ++i) {
    const double at = points[i], value = f.f(at), slope = f.df(at);
    ASSERT_LE(std::abs(values[i] - value), 1e-6 * std::abs(value) + 1.2e-7 * std::abs(at * slope) + 4e-37) << f.name << " at " << at;
    ASSERT_LE(std::abs(slopes[i] - slope), 4e-6 * (std::abs(slope) + std::abs(value)) + 4e-7) << f.name << "' at " << at;
  }
}

TEST_P(EveryFunction, propagates_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (std::isnan(GetParam().f(nan))) {
    EXPECT_TRUE(std::isnan(GetParam().run(Tensor::from(std::vector<float>{nan}, {1}, test_device())).item()));
  }
}

TEST(Gelu, is_zero_or_the_identity_for_large_inputs) {
  const float far = std::numeric_limits<float>::infinity();
  Tensor x = Tensor::from(std::vector<float>{-far, -1e30f, -20, 20, 1e30f, far}, {6}, test_device());
  x.require_grad();
  const Tensor y = gelu(x);
  backward(y, Tensor::ones({6}, test_device()));
  const auto values = y.to_vector<float>(), slopes = x.grad().to_vector<float>();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(values[i], 0, 1e-36) << i;
    EXPECT_NEAR(slopes[i], 0, 1e-35) << i;
  }
  EXPECT_EQ(std::vector<float>(values.begin() + 3, values.end()), (std::vector<float>{20, 1e30f, far}));
  EXPECT_EQ(std::vector<float>(slopes.begin() + 3, slopes.end()), (std::vector<float>{1, 1, 1}));
}

INSTANTIATE_TEST_SUITE_P(ops, EveryFunction, testing::ValuesIn(every_function()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace heed::test
