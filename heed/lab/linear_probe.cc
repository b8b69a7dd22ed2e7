#include "heed/lab/linear_probe.h"

#include <algorithm>
#include <cmath>

#include "heed/core/check.h"

namespace heed::lab {
namespace {

// Solves A X = B in place by Cholesky's decomposition. A: (n, n), symmetric, positive; B: (n, columns) -> X
void solve_positive(std::vector<std::vector<double>>& a, std::vector<std::vector<double>>& b) {
  const size_t n = a.size();
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(a[j][j]);
    for (size_t i = j + 1; i < n; ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t c = 0; c < b[0].size(); ++c) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < i; ++k) b[i][c] -= a[i][k] * b[k][c];
      b[i][c] /= a[i][i];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t k = i + 1; k < n; ++k) b[i][c] -= a[k][i] * b[k][c];
      b[i][c] /= a[i][i];
    }
  }
}

std::vector<double> standardized(const std::vector<double>& row, const std::vector<double>& mean, const std::vector<double>& scale) {
  std::vector<double> out(row.size() + 1, 1.0);  // the last is the constant
  for (size_t d = 0; d < row.size(); ++d) out[d] = (row[d] - mean[d]) * scale[d];
  return out;
}

}  // namespace

LinearProbe::LinearProbe(const Labelled& fitted, double ridge) {
  check(!fitted.rows.empty(), "probe: found no rows, expected at least one");
  const size_t D = fitted.rows[0].size();
  const auto count = static_cast<double>(fitted.rows.size());
  mean_.assign(D, 0), scale_.assign(D, 0);
  for (const std::vector<double>& row : fitted.rows)
    for (size_t d = 0; d < D; ++d) mean_[d] += row[d] / count;
  for (const std::vector<double>& row : fitted.rows)
    for (size_t d = 0; d < D; ++d) scale_[d] += (row[d] - mean_[d]) * (row[d] - mean_[d]) / count;
  for (double& each : scale_) each = 1 / std::sqrt(each + 1e-12);
  const auto labels = static_cast<size_t>(*std::max_element(fitted.labels.begin(), fitted.labels.end()) + 1);
  std::vector<std::vector<double>> squares(D + 1, std::vector<double>(D + 1)), products(D + 1, std::vector<double>(labels));
  for (size_t i = 0; i < fitted.rows.size(); ++i) {
    const std::vector<double> x = standardized(fitted.rows[i], mean_, scale_);
    for (size_t d = 0; d <= D; ++d) {
      for (size_t e = 0; e <= d; ++e) squares[d][e] += x[d] * x[e];
      products[d][static_cast<size_t>(fitted.labels[i])] += x[d];
    }
  }
  for (size_t d = 0; d <= D; ++d) {
    squares[d][d] += ridge * count;
    for (size_t e = d + 1; e <= D; ++e) squares[d][e] = squares[e][d];
  }
  solve_positive(squares, products);
  weights_.assign(labels, std::vector<double>(D + 1));
  for (size_t label = 0; label < labels; ++label)
    for (size_t d = 0; d <= D; ++d) weights_[label][d] = products[d][label];
}

int64_t LinearProbe::label_of(const std::vector<double>& row) const {
  const std::vector<double> x = standardized(row, mean_, scale_);
  size_t best = 0;
  double most = -INFINITY;
  for (size_t label = 0; label < weights_.size(); ++label) {
    double sum = 0;
    for (size_t d = 0; d < x.size(); ++d) sum += weights_[label][d] * x[d];
    if (sum > most) most = sum, best = label;
  }
  return static_cast<int64_t>(best);
}

double balanced_accuracy(const LinearProbe& probe, const Labelled& test) {
  std::vector<double> right, all;
  for (size_t i = 0; i < test.rows.size(); ++i) {
    const auto label = static_cast<size_t>(test.labels[i]);
    if (label >= all.size()) right.resize(label + 1), all.resize(label + 1);
    right[label] += probe.label_of(test.rows[i]) == test.labels[i], ++all[label];
  }
  double sum = 0, labels = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] > 0) sum += right[i] / all[i], ++labels;
  return labels > 0 ? sum / labels : std::nan("");
}

}  // namespace heed::lab
