// Measurements: differences, confidence intervals, power-law fits, and timings that are robust against load on the machine.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::lab {

std::vector<double> values_of(const Tensor& x);               // row-major
double largest_difference(const Tensor& a, const Tensor& b);  // max |a - b|; the shapes must agree
double largest(const Tensor& x);                              // max |x|

double mean_of(std::span<const double> values);
double median_of(std::vector<double> values);
double entropy_of(std::span<const float> probabilities);  // in nats; 0 log 0 = 0

struct Interval {
  double mean, low, high;
};
Interval confidence(std::span<const double> values);  // 95 % confidence interval of the mean, Student's t
// The same for shares such as accuracies: Wilson's interval (1927), which stays between 0 and 1. Its number of samples is the one that
// explains the spread of the values, at most `samples` each; its quantile is Student's.
Interval share_confidence(std::span<const double> shares, double samples = INFINITY);
// Of the mean difference of two shares of the same samples, one difference per run. Student's t, but no narrower than what the samples
// allow even where all runs agree: at least |difference| of them are in one share only, so its variance is |d| (1 - |d|) / samples or more.
Interval difference_confidence(std::span<const double> differences, double samples = INFINITY);

// factor x^exponent, least squares in log-log; error: the standard error of the exponent.
struct Power {
  double exponent, factor, error;
  double at(double x) const;
};
Power fitted_power(std::span<const double> x, std::span<const double> y);

// Where curve a falls below curve b, interpolated in log-log; empty if it never does.
std::optional<double> crossover(std::span<const double> x, std::span<const double> a, std::span<const double> b);

std::vector<double> steps(double from, double to, int count);   // evenly spaced
std::vector<double> powers(double from, double to, int count);  // evenly spaced logarithms

// Seconds of each function: they run interleaved, so that load on the machine affects all of them, and the median of `rounds` is returned.
// Short ones are repeated within a round.
std::vector<double> median_seconds(const std::vector<std::function<void()>>& functions, int rounds = 9);
// The same single-threaded, in CPU time of the thread: for scaling exponents on a busy machine.
std::vector<double> processor_seconds(const std::vector<std::function<void()>>& functions, int rounds = 9);

}  // namespace heed::lab
