#include "heed/lab/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>

#include "heed/core/parallel.h"

namespace heed::lab {
namespace {

constexpr double kLeastSeconds = 1e-3;  // of one timing; shorter ones measure the clock itself

using Clock = std::function<double()>;  // in seconds
double wall_clock() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double thread_clock() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& function, int64_t times, const Clock& clock) {
  const double begin = clock();
  for (int64_t i = 0; i < times; ++i) function();
  return (clock() - begin) / static_cast<double>(times);
}

std::vector<double> medians_by(const Clock& clock, const std::vector<std::function<void()>>& functions, int rounds) {
  std::vector<int64_t> times;
  for (const auto& function : functions) {
    function();  // warm-up: allocates memory and packs weights
    times.push_back(static_cast<int64_t>(std::clamp(kLeastSeconds / std::max(seconds_of(function, 1, clock), 1e-9), 1.0, 10000.0)));
  }
  std::vector<std::vector<double>> seconds(functions.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < functions.size(); ++i) seconds[i].push_back(seconds_of(functions[i], times[i], clock));
  std::vector<double> out;
  for (const std::vector<double>& each : seconds) out.push_back(median_of(each));
  return out;
}

// 97.5 % quantile of Student's t by degrees of freedom.
double student(size_t freedom) {
  constexpr std::array<double, 11> few{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (freedom < few.size()) return few[freedom];
  const auto n = static_cast<double>(freedom);
  return 1.96 + 2.372 / n + 2.82 / (n * n);  // Cornish and Fisher's expansion
}

}  // namespace

std::vector<double> values_of(const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  return {values.begin(), values.end()};
}

double largest_difference(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "largest difference: shapes ", a.shape(), " and ", b.shape(), ", expected the same");
  const std::vector<double> left = values_of(a), right = values_of(b);
  double out = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const double distance = std::abs(left[i] - right[i]);
    if (!(distance <= out)) out = distance;  // keeps NaN
    if (std::isnan(out)) break;
  }
  return out;
}

double largest(const Tensor& x) { return largest_difference(x, Tensor::zeros(x.shape(), kCpu)); }

double mean_of(std::span<const double> values) {
  check(!values.empty(), "mean: found 0 values, expected 1 or more");
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  check(!values.empty(), "median: found 0 values, expected 1 or more");
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double entropy_of(std::span<const float> probabilities) {
  double out = 0;
  for (const double p : probabilities)
    if (p > 0) out -= p * std::log(p);
  return out;
}

Interval confidence(std::span<const double> values) {
  check(values.size() >= 2, "confidence: found ", values.size(), " values, expected 2 or more");
  const double mean = mean_of(values), count = static_cast<double>(values.size());
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const double half = student(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return {mean, mean - half, mean + half};
}

Interval share_confidence(std::span<const double> shares, double samples) {
  const Interval plain = confidence(shares);
  const double p = plain.mean, z = student(shares.size() - 1), error = (plain.high - p) / z;  // standard error of the mean
  const double most = samples * static_cast<double>(shares.size());
  const double n = std::min(error > 0 ? p * (1 - p) / (error * error) : most, most), shrink = 1 + z * z / n;
  const double middle = (p + z * z / (2 * n)) / shrink, half = z / shrink * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {p, std::clamp(middle - half, 0.0, p), std::clamp(middle + half, p, 1.0)};
}

Interval difference_confidence(std::span<const double> differences, double samples) {
  const Interval plain = confidence(differences);
  const double apart = std::clamp(std::abs(plain.mean), 1 / samples, 1.0);  // one of the samples, where no difference was seen
  const double error = std::sqrt(apart * (1 - apart) / (samples * static_cast<double>(differences.size())));
  const double half = std::max(plain.high - plain.mean, student(differences.size() - 1) * error);
  return {plain.mean, std::max(plain.mean - half, -1.0), std::min(plain.mean + half, 1.0)};
}

double Power::at(double x) const { return factor * std::pow(x, exponent); }

Power fitted_power(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size() && x.size() >= 2, "fitted power: found ", x.size(), " and ", y.size(),
        " numbers, expected the same number, 2 or more");
  const auto count = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, variance_x = 0, covariance = 0, residual = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    check(x[i] > 0 && y[i] > 0, "fitted power: found ", x[i], " and ", y[i], ", expected numbers above 0");
    mean_x += std::log(x[i]) / count;
    mean_y += std::log(y[i]) / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    variance_x += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
    covariance += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
  }
  check(variance_x > 0, "fitted power: all x are ", x[0], ", expected different ones");
  const double exponent = covariance / variance_x;
  for (size_t i = 0; i < x.size(); ++i) residual += std::pow(std::log(y[i]) - mean_y - exponent * (std::log(x[i]) - mean_x), 2);
  return {exponent, std::exp(mean_y - exponent * mean_x), x.size() > 2 ? std::sqrt(residual / (count - 2) / variance_x) : 0};
}

std::optional<double> crossover(std::span<const double> x, std::span<const double> a, std::span<const double> b) {
  check(x.size() == a.size() && x.size() == b.size(), "crossover: found ", x.size(), ", ", a.size(), " and ", b.size(),
        " numbers, expected the same number");
  for (size_t i = 1; i < x.size(); ++i) {
    const double before = std::log(a[i - 1] / b[i - 1]), after = std::log(a[i] / b[i]);
    if (before > 0 && after <= 0) return std::exp(std::log(x[i - 1]) + before / (before - after) * std::log(x[i] / x[i - 1]));
  }
  return std::nullopt;
}

std::vector<double> steps(double from, double to, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(i + 1 == count ? to : from + (to - from) * i / (count - 1));
  return out;
}
std::vector<double> powers(double from, double to, int count) {
  std::vector<double> out = steps(std::log(from), std::log(to), count);
  for (double& each : out) each = std::exp(each);
  if (count > 0) out.front() = from, out.back() = to;
  return out;
}

std::vector<double> median_seconds(const std::vector<std::function<void()>>& functions, int rounds) {
  return medians_by(wall_clock, functions, rounds);
}

std::vector<double> processor_seconds(const std::vector<std::function<void()>>& functions, int rounds) {
  const StayInThread alone;
  return medians_by(thread_clock, functions, rounds);
}

}  // namespace heed::lab
