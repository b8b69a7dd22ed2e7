// Definitions of the elementwise functions in double.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/ops/ops.h"

namespace heed::test {

struct Reference {
  double (*f)(double);
  double (*df)(double);
};

// Every function and its derivative by their definitions, in forms that lose no digits in double, independent of heed/ops/elementwise.h.
inline Reference reference_of(Elementwise op) {
  switch (op) {
    case Elementwise::exp: return {[](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }};
    case Elementwise::log: return {[](double x) { return std::log(x); }, [](double x) { return 1 / x; }};
    case Elementwise::sqrt: return {[](double x) { return std::sqrt(x); }, [](double x) { return 1 / (2 * std::sqrt(x)); }};
    case Elementwise::tanh: return {[](double x) { return std::tanh(x); }, [](double x) { return std::pow(std::cosh(x), -2); }};
    case Elementwise::sigmoid:
      return {[](double x) { return 1 / (1 + std::exp(-x)); }, [](double x) { return std::pow(2 * std::cosh(x / 2), -2); }};
    case Elementwise::softplus:  // log(1 + e^x) = x + log(1 + e^-x)
      return {[](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); },
              [](double x) { return 1 / (1 + std::exp(-x)); }};
    case Elementwise::relu: return {[](double x) { return x < 0 ? 0 : x; }, [](double x) { return x > 0 ? 1.0 : 0.0; }};
    case Elementwise::silu:  // x / (1 + e^-x)
      return {[](double x) { return x / (1 + std::exp(-x)); },
              [](double x) { return (1 + std::exp(-x) + x * std::exp(-x)) / std::pow(1 + std::exp(-x), 2); }};
    case Elementwise::gelu:  // x Phi(x), Phi(x) + x phi(x)
      return {[](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; },
              [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }};
    case Elementwise::gelu_tanh:  // x (1 + tanh s) / 2 with s = sqrt(2 / pi) (x + 0.044715 x^3), and 1 + tanh s = 2 / (1 + e^-2s)
      return {[](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3)))); },
              [](double x) {
                const double s = std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3)),
                             ds = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
                return 1 / (1 + std::exp(-2 * s)) + x / 2 * ds * std::pow(std::cosh(s), -2);
              }};
    case Elementwise::quick_gelu:  // x / (1 + e^(-1.702 x))
      return {[](double x) { return x / (1 + std::exp(-1.702 * x)); },
              [](double x) { return (1 + std::exp(-1.702 * x) * (1 + 1.702 * x)) / std::pow(1 + std::exp(-1.702 * x), 2); }};
    case Elementwise::gelu_10:
      return {[](double x) { return std::min(x * std::erfc(-x / std::sqrt(2.0)) / 2, 10.0); },
              [](double x) { return x > 10 ? 0 : std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }};
    case Elementwise::relu2: return {[](double x) { return x < 0 ? 0 : x * x; }, [](double x) { return x > 0 ? 2 * x : 0.0; }};
    case Elementwise::relu6:
      return {[](double x) { return std::min(std::max(x, 0.0), 6.0); }, [](double x) { return x > 0 && x < 6 ? 1.0 : 0.0; }};
    case Elementwise::leaky_relu: return {[](double x) { return x < 0 ? 0.01 * x : x; }, [](double x) { return x > 0 ? 1.0 : 0.01; }};
    case Elementwise::hardswish:
      return {[](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; },
              [](double x) { return x < -3  ? 0
                                    : x > 3 ? 1
                                            : x / 3 + 0.5; }};
    case Elementwise::mish:  // t = tanh(log(1 + e^x)), t + x / cosh^2(log(1 + e^x)) / (1 + e^-x)
      return {[](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
              [](double x) {
                const double s = x > 30 ? x : std::log1p(std::exp(x));
                return std::tanh(s) + x * std::pow(std::cosh(s), -2) / (1 + std::exp(-x));
              }};
    case Elementwise::sqrtsoftplus:
      return {[](double x) { return std::sqrt(x > 30 ? x : std::log1p(std::exp(x))); },
              [](double x) { return 1 / (1 + std::exp(-x)) / (2 * std::sqrt(x > 30 ? x : std::log1p(std::exp(x)))); }};
  }
  return {};
}

}  // namespace heed::test
