#include "heed/lab/coverage.h"

#include <algorithm>
#include <cmath>

namespace heed::lab {
namespace {

// The weight of the offset nearest to the centre, over all offsets of an endless grid: 1 is one-hot.
double largest_weight(const GaussianHead& head) {
  constexpr int64_t reach = 12;  // offsets on each side
  const std::array<double, 2> at = head.looks_at();
  double sum = 0, most = 0;
  for (int64_t row = -reach; row <= reach; ++row)
    for (int64_t column = -reach; column <= reach; ++column) {
      const double down = static_cast<double>(row) + std::round(at[0]) - at[0],
                   along = static_cast<double>(column) + std::round(at[1]) - at[1];
      const double weight =
          std::exp(-(head.precision[0] * down * down + 2 * head.precision[1] * down * along + head.precision[2] * along * along));
      sum += weight, most = std::max(most, weight);
    }
  return most / sum;
}

}  // namespace

LayerCoverage coverage_of(const GaussianLayer& layer, int64_t K) {
  const int64_t half = K / 2;
  LayerCoverage out;
  for (int64_t row = -half; row < K - half; ++row)
    for (int64_t column = -half; column < K - half; ++column) {
      bool near = false, sharp = false;
      for (const GaussianHead& head : layer.heads) {
        const std::array<double, 2> at = head.looks_at();
        if (std::round(at[0]) != static_cast<double>(row) || std::round(at[1]) != static_cast<double>(column)) continue;
        near = true;
        sharp = sharp || largest_weight(head) >= 0.5;
      }
      out.covered += near, out.sharp += sharp;
    }
  out.covered /= static_cast<double>(K * K), out.sharp /= static_cast<double>(K * K);
  for (const GaussianHead& head : layer.heads) out.one_hot += largest_weight(head) / static_cast<double>(layer.heads.size());
  return out;
}

int64_t widest_kernel(const GaussianLayer& layer) {
  int64_t K = 1;
  while ((K + 2) * (K + 2) <= std::ssize(layer.heads)) K += 2;
  return K;
}

}  // namespace heed::lab
