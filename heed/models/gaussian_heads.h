// Heads with Gaussian positions (Cordonnier et al. 2020): where they attend, how wide they are, and which of them are degenerate.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/models/model.h"

namespace HEED_API heed {

// The score of a key is -(d - center)^T precision (d - center) with d = query - key in rows and columns, so the weights are a
// Gaussian with covariance (2 precision)^-1 around the position query - center.
struct GaussianHead {
  std::array<double, 2> center{};     // the parameter: row, column
  std::array<double, 3> precision{};  // row-row, row-column, column-column
  std::vector<float> learned = {};    // alpha, or the 2 x 2 spread

  bool isotropic() const { return learned.size() == 1; }
  std::array<double, 2> looks_at() const { return {-center[0], -center[1]}; }  // offset of the best key from the query: rows, columns
  std::array<double, 2> eigenvalues() const;                                   // of the precision, the smaller first
  std::optional<std::array<double, 3>> covariance() const;                     // none if the precision is not positive definite
};

// learned: alpha, or a 2 x 2 spread
GaussianHead gaussian_head(std::vector<float> learned, std::array<double, 2> center);

// Semi-axes in tokens, and the direction of the longer one: 0 is along a row, pi / 2 along a column.
struct Ellipse {
  double longer = 0, shorter = 0, angle = 0;
  std::array<double, 2> at(double t) const;  // a point of the ellipse relative to its center: rows, columns. t: 0 to 2 pi
};
// The contour that encloses the share `mass` of the Gaussian: 1 - exp(-r) within d^T precision d <= r.
std::optional<Ellipse> contour(const GaussianHead& head, double mass);

struct GaussianLayer {
  std::string name = {};  // "vit.encoder.layer.0.attention"
  std::vector<GaussianHead> heads = {};
};
struct GaussianHeads {
  std::array<int64_t, 2> grid{};  // rows and columns of tokens
  std::vector<GaussianLayer> layers = {};
};
GaussianHeads gaussian_heads(const Model& model);  // no layers if the model has other positions

// A degenerate head.
struct HeadAlarm {
  enum class Kind { no_gaussian, everywhere, one_key, outside, twins };
  Kind kind = Kind::no_gaussian;
  size_t layer = 0, head = 0;
  std::optional<size_t> twin = {};  // the head it duplicates
  std::string text = {};            // message
};
std::vector<HeadAlarm> alarms_of(const GaussianHeads& heads);

// Overlap of two heads: the Bhattacharyya coefficient, 1 if they are equal; 0 if one is not a Gaussian.
double head_overlap(const GaussianHead& a, const GaussianHead& b);

}  // namespace heed
