// How experiments measure: differences, confidence, powers fitted to curves, and times that other work on the machine hardly moves.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::lab {

std::vector<double> values_of(const Tensor& x);               // row-major
double largest_difference(const Tensor& a, const Tensor& b);  // of elements; the shapes must agree
double largest(const Tensor& x);                              // absolute value

double mean_of(std::span<const double> values);
double median_of(std::vector<double> values);
double entropy_of(std::span<const float> probabilities);  // in nats; 0 log 0 = 0

struct Interval {
  double mean, low, high;
};
Interval confidence(std::span<const double> values);  // of the mean, 95 %, by Student's t

// factor x^exponent, by least squares of the logarithms; error: the standard error of the exponent.
struct Power {
  double exponent, factor, error;
  double at(double x) const;
};
Power fitted_power(std::span<const double> x, std::span<const double> y);

// Where curve a falls below curve b, on a line between logarithms; nothing where it never does.
std::optional<double> crossover(std::span<const double> x, std::span<const double> a, std::span<const double> b);

std::vector<double> steps(double from, double to, int count);   // evenly spaced
std::vector<double> powers(double from, double to, int count);  // evenly spaced logarithms

// Seconds that each work takes: they take turns, so that a busy moment of the machine falls on all of them, and the median of `rounds` is
// given. Short ones are repeated within a round.
std::vector<double> median_seconds(const std::vector<std::function<void()>>& works, int rounds = 9);
// The same in one thread, by a clock that stands still while others have its processor: for laws of growth on a busy machine.
std::vector<double> processor_seconds(const std::vector<std::function<void()>>& works, int rounds = 9);

}  // namespace heed::lab
