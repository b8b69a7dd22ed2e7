// Heads that look at places (Cordonnier et al. 2020): where the Gaussian positions of a model stand, how wide they look, and
// which of them have gone astray.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "heed/models/model.h"

namespace heed {

// The score of a key is -(d - center)^T precision (d - center), d = place of query - place of key in rows and columns, so the
// weights are a Gaussian of covariance (2 precision)^-1 round the place query - center.
struct GaussianHead {
  std::array<double, 2> center{};     // as the parameter has it
  std::array<double, 3> precision{};  // down-down, down-along, along-along
  std::vector<float> learned = {};    // alpha, or the four numbers of a spread

  bool isotropic() const { return learned.size() == 1; }
  std::array<double, 2> looks_at() const { return {-center[0], -center[1]}; }  // of keys, from the query: down, along
  std::array<double, 2> eigenvalues() const;                                   // of the precision, the smaller first
  std::optional<std::array<double, 3>> covariance() const;                     // nothing where the precision is not positive
};

// learned: alpha, or a spread of 2 x 2
GaussianHead gaussian_head(std::vector<float> learned, std::array<double, 2> center);

// Semi-axes in tokens, the longer first, and the direction of that one: 0 is along a row, pi / 2 down a column.
struct Ellipse {
  double longer = 0, shorter = 0, angle = 0;
  std::array<double, 2> at(double turn) const;  // a point of it, from its center: down, along. turn: 0 to 2 pi
};
// Round the share `mass` of the Gaussian, which is 1 - exp(-r) within d^T precision d <= r.
std::optional<Ellipse> contour(const GaussianHead& head, double mass);

struct GaussianLayer {
  std::string name = {};  // "vit.encoder.layer.0.attention"
  std::vector<GaussianHead> heads = {};
};
struct GaussianHeads {
  std::array<int64_t, 2> grid{};  // rows and columns of tokens
  std::vector<GaussianLayer> layers = {};
};
GaussianHeads gaussian_heads(const Model& model);  // without layers where positions are others

// A head that does not do what heads are for.
struct HeadAlarm {
  enum class Kind { no_gaussian, everywhere, one_key, outside, twins };
  Kind kind = Kind::no_gaussian;
  size_t layer = 0, head = 0;
  std::optional<size_t> twin = {};  // the other one
  std::string text = {};            // for people
};
std::vector<HeadAlarm> alarms_of(const GaussianHeads& heads);

// How much of two heads is the same: Bhattacharyya's coefficient, 1 where they are equal; 0 where one is no Gaussian.
double likeness(const GaussianHead& a, const GaussianHead& b);

}  // namespace heed
