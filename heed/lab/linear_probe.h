// Linear probes (Alain and Bengio 2016): how much of a label a linear map reads from frozen states.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::lab {

// Rows of features, each with a label from 0 on.
struct Labelled {
  std::vector<std::vector<double>> rows = {};
  std::vector<int64_t> labels = {};

  void add(std::vector<double> row, int64_t label) { rows.push_back(std::move(row)), labels.push_back(label); }
};

// Least squares to one-hot labels with a ridge, on standardized features.
class LinearProbe {
 public:
  explicit LinearProbe(const Labelled& fitted, double ridge = 1e-2);

  int64_t label_of(const std::vector<double>& row) const;  // the largest output

 private:
  std::vector<double> mean_, scale_;          // of every feature
  std::vector<std::vector<double>> weights_;  // (labels, features + 1)
};

double balanced_accuracy(const LinearProbe& probe, const Labelled& test);  // mean over labels of the share of their rows

}  // namespace heed::lab
