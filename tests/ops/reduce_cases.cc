// Reductions against sums in double; long ones for accuracy and for several tasks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heed/core/parallel.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

bool contains(const Axes& axes, int axis, int rank) {
  for (int a : axes)
    if (a == axis || a + rank == axis) return true;
  return axes.empty();
}

// Reduces the values of one output element, in row-major order, to a number.
using Reduce = std::function<double(const std::vector<double>&)>;

Doubles reduced(const Doubles& x, const Axes& axes, bool keep, const Reduce& reduce) {
  Shape kept = x.shape, out;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const bool gone = contains(axes, axis, x.shape.rank());
    if (gone) kept[axis] = 1;
    if (!gone || keep) out.push_back(kept[axis]);
  }
  Doubles result(out);
  std::vector<std::vector<double>> values_of(result.values.size());
  for_each_index(x.shape, [&](const Shape& index) {
    Shape place = index;
    for (int axis = 0; axis < index.rank(); ++axis)
      if (kept[axis] == 1) place[axis] = 0;
    values_of[static_cast<size_t>(flat(kept, place))].push_back(x[flat(x.shape, index)]);
  });
  for (size_t i = 0; i < values_of.size(); ++i) result.values[i] = reduce(values_of[i]);
  return result;
}

double sum_of(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value;
  return total;
}
double mean_of(const std::vector<double>& values) { return sum_of(values) / static_cast<double>(values.size()); }
double max_of(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }
double variance_of(const std::vector<double>& values, bool unbiased) {
  const double center = mean_of(values);
  double total = 0;
  for (double value : values) total += (value - center) * (value - center);
  return total / (static_cast<double>(values.size()) - (unbiased ? 1 : 0));
}

struct Setting {
  Shape shape;
  Axes axes;
  bool keep = false;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> list = {
      {{}, {}},
      {{1}, {0}},
      {{7}, {}},
      {{5, 6}, {0}},
      {{5, 6}, {1}, true},
      {{3, 37}, {-1}},
      {{70, 3}, {0}, true},
      {{9, 21}, {-2}},
      {{4, 5, 6}, {1}},
      {{4, 5, 6}, {0, 2}},
      {{4, 5, 6}, {2, 0}, true},
      {{2, 3, 4, 5}, {0, 2}},
      {{2, 3, 4, 5}, {1, -1}, true},
      {{2, 3, 4, 5}, {0, 1, 2, 3}},
      {{3, 1, 5}, {0, 2}},
      {{6, 1, 4}, {1}},
      {{2, 2, 3, 2, 2}, {0, 2, 4}},
  };
  return list;
}

std::vector<Case> reduce_cases(const std::function<Tensor(const Tensor&, const Setting&)>& run, const Reduce& reduce) {
  std::vector<Case> list;
  for (const Setting& s : settings()) {
    std::ostringstream what;
    what << s.shape << (s.keep ? " kept, axes" : ", axes");
    for (int axis : s.axes) what << ' ' << axis;
    Case c;
    c.what = what.str();
    c.inputs = {distinct_input(s.shape)};
    c.run = [=](const Tensors& x) { return Tensors{run(x[0], s)}; };
    c.reference = [=](const Many& x) { return Many{reduced(x[0], s.axes, s.keep, reduce)}; };
    list.push_back(c);
  }
  return list;
}

}  // namespace

template <>
std::vector<Case> cases<Op::sum>() {
  return reduce_cases([](const Tensor& x, const Setting& s) { return sum(x, s.axes, s.keep); }, sum_of);
}

template <>
std::vector<Case> cases<Op::mean>() {
  return reduce_cases([](const Tensor& x, const Setting& s) { return mean(x, s.axes, s.keep); }, mean_of);
}

template <>
std::vector<Case> cases<Op::max>() {
  return reduce_cases([](const Tensor& x, const Setting& s) { return max(x, s.axes, s.keep); }, max_of);
}

template <>
std::vector<Case> cases<Op::variance>() {
  std::vector<Case> list = reduce_cases([](const Tensor& x, const Setting& s) { return variance(x, s.axes, s.keep); },
                                        [](const std::vector<double>& v) { return variance_of(v, false); });
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{-1}, Axes{0, 2}}) {
    Case c;
    c.what = "unbiased";
    c.inputs = {normal_input({3, 4, 5})};
    c.run = [=](const Tensors& x) { return Tensors{variance(x[0], axes, false, true)}; };
    c.reference = [=](const Many& x) { return Many{reduced(x[0], axes, false, [](const auto& v) { return variance_of(v, true); })}; };
    list.push_back(c);
  }
  return list;
}

namespace {

// Shapes that kernels split into several blocks along every axis.
const std::vector<Setting>& long_settings() {
  static const std::vector<Setting> list = {
      {{100003}, {}},       {{3, 40001}, {1}},      {{4160, 192}, {0}}, {{130, 1100}, {0}},
      {{2, 1500, 77}, {1}}, {{20, 9, 700}, {0, 2}}, {{7000, 5}, {0}},   {{5000, 5}, {1}},
  };
  return list;
}

void expect_near(const Tensor& got, const Doubles& expected, double tolerance) {
  ASSERT_EQ(got.shape(), expected.shape);
  const std::vector<float> values = got.to_vector<float>();
  for (int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(values[static_cast<size_t>(i)], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

// Forward and gradient (for a gradient of ones) with 1, 2 and 7 threads, which must agree bit for bit.
std::pair<Tensor, Tensor> with_threads(const Tensor& input, const std::function<Tensor(const Tensor&)>& op) {
  std::vector<std::pair<std::vector<float>, std::vector<float>>> runs;
  Tensor y, dx;
  const int before = thread_count();
  for (int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const Tensor x = input.detach().require_grad();
    y = op(x);
    backward(y, Tensor::ones(y.shape(), test_device()));
    dx = x.grad();
    runs.emplace_back(y.to_vector<float>(), dx.to_vector<float>());
    EXPECT_EQ(runs.back(), runs.front()) << threads << " threads";
  }
  set_thread_count(before);
  return {y.detach(), dx};
}

TEST(Reduce, long_tensors_match_double_precision) {
  for (const Setting& s : long_settings()) {
    SCOPED_TRACE(testing::Message() << s.shape);
    const Tensor x = positive_input(s.shape);
    const Doubles wide(x);
    const auto [total, total_back] = with_threads(x, [&](const Tensor& t) { return sum(t, s.axes); });
    expect_near(total, reduced(wide, s.axes, false, sum_of), 1e-6);
    for (float g : total_back.to_vector<float>()) ASSERT_EQ(g, 1.0f);

    const auto [top, top_back] = with_threads(x, [&](const Tensor& t) { return max(t, s.axes); });
    const Doubles expected_top = reduced(wide, s.axes, false, max_of);
    expect_near(top, expected_top, 0);
    double shared = 0;
    for (float g : top_back.to_vector<float>()) shared += g;
    EXPECT_NEAR(shared, static_cast<double>(expected_top.size()), 1e-3);

    const auto [spread, spread_back] = with_threads(x, [&](const Tensor& t) { return variance(t, s.axes); });
    expect_near(spread, reduced(wide, s.axes, false, [](const auto& v) { return variance_of(v, false); }), 2e-6);
    const double n = static_cast<double>(wide.size()) / static_cast<double>(spread.count());
    const Doubles center = reduced(wide, s.axes, true, mean_of);
    Doubles slope(s.shape);
    for_each_index(s.shape, [&](const Shape& index) {
      const int64_t i = flat(s.shape, index);
      slope[i] = 2 * (wide[i] - broadcast_at(center, index, s.shape.rank())) / n;
    });
    expect_near(spread_back, slope, 1e-6);
  }
}

TEST(Reduce, sums_of_ten_million_numbers_are_accurate) {
  const Tensor x = Tensor::full({10'000'000}, 0.1f, test_device());
  EXPECT_NEAR(sum(x).item() / 1e7, static_cast<double>(0.1f), 1e-7);
  EXPECT_NEAR(mean(reshape(x, {5'000'000, 2}), {0}).to_vector<float>()[1], 0.1f, 1e-7);
  EXPECT_NEAR(variance(x).item(), 0, 1e-12);
}

TEST(Reduce, max_splits_its_gradient_between_equal_maxima) {
  const Tensor x = Tensor::from<float>({3, 1, 3, 2, 5, 5, 5, 5}, {2, 4}, test_device()).require_grad();
  backward(max(x, {1}), Tensor::from<float>({6, 8}, {2}, test_device()));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 0, 3, 0, 2, 2, 2, 2}));
}

TEST(Reduce, max_propagates_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (int64_t size : {1, 5, 16, 33, 100})
    for (int64_t place = 0; place < size; ++place) {
      std::vector<float> values(static_cast<size_t>(size), -1.0f);
      values[static_cast<size_t>(place)] = nan;
      const Tensor x = Tensor::from(values, {size}, test_device()).require_grad();
      const Tensor top = max(x);
      EXPECT_TRUE(std::isnan(top.item()));
      EXPECT_EQ(argmax(x).item<int64_t>(), place);
      backward(top);
      EXPECT_EQ(x.grad().to_vector<float>()[static_cast<size_t>(place)], 1.0f);
      EXPECT_TRUE(std::isnan(max(reshape(x, {size, 1, 1}), {0}).item()));
      EXPECT_TRUE(std::isnan(max(expand(reshape(x, {size, 1}), {size, 3}), {0}).to_vector<float>()[2]));
    }
  EXPECT_EQ(max(Tensor::full({20}, -infinity, test_device())).item(), -infinity);
}

TEST(Reduce, argmax_returns_the_first_maximum) {
  const Tensor x = Tensor::from<float>({1, 4, 4, 2, 9, 9, 0, 9, -1, -2, -3, -1}, {3, 4}, test_device());
  EXPECT_EQ(argmax(x).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(argmax(x, 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 0, 1}));
  EXPECT_EQ(argmax(transpose(x, 0, 1), 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(argmax(cast(x, DType::bf16), 1).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(argmax(x).shape(), Shape({3}));
  EXPECT_EQ(argmax(Tensor::zeros({0, 4}, test_device())).count(), 0);
  EXPECT_THROW(argmax(Tensor::zeros({4, 0}, test_device())), Error);
}

TEST(Reduce, sum_to_reverses_a_broadcast) {
  const Tensor x = normal_input({2, 3, 4});
  EXPECT_EQ(sum_to(x, {2, 3, 4}).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(sum_to(x, {3, 1}).to_vector<float>(), sum(x, {0, 2}).to_vector<float>());
  EXPECT_EQ(sum_to(x, {3, 1}).shape(), Shape({3, 1}));
  EXPECT_EQ(sum_to(x, {}).to_vector<float>(), sum(x).to_vector<float>());
  EXPECT_EQ(sum_to(Tensor::zeros({0, 3}, test_device()), {1, 3}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_THROW(sum_to(x, {2, 4}), Error);
  EXPECT_THROW(sum_to(x, {1, 2, 3, 4}), Error);
}

TEST(Reduce, handles_empty_axes) {
  const Tensor x = Tensor::zeros({3, 0, 2}, test_device()).require_grad();
  EXPECT_EQ(sum(x, {1}).to_vector<float>(), std::vector<float>(6, 0));
  EXPECT_EQ(sum(x).item(), 0);
  EXPECT_EQ(sum(x, {0}).shape(), Shape({0, 2}));
  EXPECT_EQ(mean(x, {0}).shape(), Shape({0, 2}));
  EXPECT_EQ(max(x, {2}, true).shape(), Shape({3, 0, 1}));
  EXPECT_EQ(variance(x, {2}).shape(), Shape({3, 0}));
  for (const Tensor& y : {max(x, {0}), variance(x, {0}), mean(x, {0})}) backward(y, Tensor::zeros(y.shape(), test_device()));
  backward(sum(x));
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_THROW(mean(x), Error);
  EXPECT_THROW(max(x, {1}), Error);
  EXPECT_THROW(variance(x, {1, 2}), Error);
}

TEST(Reduce, reports_invalid_arguments) {
  const Tensor x = normal_input({1, 3});
  EXPECT_THROW(sum(x, {2}), Error);
  EXPECT_THROW(sum(x, {1, -1}), Error);
  EXPECT_THROW(variance(x, {0}, false, true), Error);
  EXPECT_THROW(sum(Tensor()), Error);
  EXPECT_THROW(sum(Tensor::zeros({2}, DType::i64, test_device())), Error);
}

}  // namespace
}  // namespace heed::test
