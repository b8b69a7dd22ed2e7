#include "heed/models/gaussian_heads.h"

#include <cmath>
#include <sstream>

#include "heed/models/architecture.h"

namespace heed {
namespace {

// Neighbours of the best key have less than exp(-14), a millionth, of its weight: the gradient vanishes.
constexpr double kMaxPrecision = 14;
constexpr double kTwinOverlap = 0.99;

struct FoundGaussian {
  std::string layer;
  Tensor shape, center;  // (H) or (H, 2, 2), and (H, 2)
};

std::vector<FoundGaussian> gaussians_in(const Model& model) {
  const std::vector<Parameter>& all = model.params().all();
  std::vector<FoundGaussian> out;
  for (const Parameter& parameter : all)
    for (const char* end : {".positions.gaussian.alpha", ".positions.gaussian_full.spread"}) {
      if (!parameter.name.ends_with(end)) continue;
      const std::string layer = parameter.name.substr(0, parameter.name.size() - std::string_view(end).size());
      const std::string center = parameter.name.substr(0, parameter.name.rfind('.')) + ".center";
      for (const Parameter& other : all)
        if (other.name == center) out.push_back({layer, parameter.tensor, other.tensor});
    }
  return out;
}

double determinant_2x2(const std::array<double, 3>& m) { return m[0] * m[2] - m[1] * m[1]; }

std::string head_number_text(double value) {
  std::ostringstream out;
  out.precision(3);
  out << value;
  return out.str();
}

}  // namespace

GaussianHead gaussian_head(std::vector<float> learned, std::array<double, 2> center) {
  check(learned.size() == 1 || learned.size() == 4, "gaussian head: ", learned.size(), " numbers, expected alpha or a spread of 2 x 2");
  GaussianHead head{.center = center, .learned = std::move(learned)};
  const std::vector<float>& s = head.learned;
  if (head.isotropic()) {
    head.precision = {s[0], 0, s[0]};
  } else {  // spread^T spread
    const double a = s[0], b = s[1], c = s[2], d = s[3];
    head.precision = {a * a + c * c, a * b + c * d, b * b + d * d};
  }
  return head;
}

std::array<double, 2> GaussianHead::eigenvalues() const {
  const double middle = (precision[0] + precision[2]) / 2, apart = std::hypot((precision[0] - precision[2]) / 2, precision[1]);
  return {middle - apart, middle + apart};
}

std::optional<std::array<double, 3>> GaussianHead::covariance() const {
  const auto [least, most] = eigenvalues();
  if (!(least > 0) || !std::isfinite(most)) return {};
  const double twice = 2 * determinant_2x2(precision);
  return std::array{precision[2] / twice, -precision[1] / twice, precision[0] / twice};
}

std::array<double, 2> Ellipse::at(double t) const {
  const double along = longer * std::cos(t), across = shorter * std::sin(t);
  return {along * std::sin(angle) + across * std::cos(angle), along * std::cos(angle) - across * std::sin(angle)};
}

std::optional<Ellipse> contour(const GaussianHead& head, double mass) {
  check(mass > 0 && mass < 1, "contour: a mass of ", mass, ", expected one between 0 and 1");
  const auto [least, most] = head.eigenvalues();
  if (!(least > 0) || !std::isfinite(most)) return {};
  const double r = -std::log1p(-mass);
  // The precision is smallest along the longer axis: half the angle of (row-row - column-column, 2 row-column), rotated by 90 degrees.
  const auto [dd, da, aa] = head.precision;
  return Ellipse{std::sqrt(r / least), std::sqrt(r / most), std::atan2(-2 * da, dd - aa) / 2};
}

GaussianHeads gaussian_heads(const Model& model) {
  GaussianHeads out;
  const std::vector<FoundGaussian> found = gaussians_in(model);
  if (found.empty()) return out;
  const Config config(model.config(), "config.json");
  const std::array<int64_t, 2> image = config.sides("image_size", 224), patch = patch_sides(model);
  out.grid = {image[0] / patch[0], image[1] / patch[1]};
  for (const FoundGaussian& layer : found) {
    const std::vector<float> shapes = layer.shape.to_vector<float>(), centers = layer.center.to_vector<float>();
    const int64_t H = layer.center.size(0), each = std::ssize(shapes) / H;
    GaussianLayer& added = out.layers.emplace_back(GaussianLayer{.name = layer.layer});
    for (int64_t h = 0; h < H; ++h)
      added.heads.push_back(gaussian_head({shapes.begin() + h * each, shapes.begin() + (h + 1) * each},
                                          {centers[static_cast<size_t>(2 * h)], centers[static_cast<size_t>(2 * h + 1)]}));
  }
  return out;
}

double head_overlap(const GaussianHead& a, const GaussianHead& b) {
  const auto first = a.covariance(), second = b.covariance();
  if (!first || !second) return 0;
  std::array<double, 3> mean{};
  for (size_t i = 0; i < 3; ++i) mean[i] = ((*first)[i] + (*second)[i]) / 2;
  const double down = a.center[0] - b.center[0], along = a.center[1] - b.center[1], all = determinant_2x2(mean);
  const double square = (mean[2] * down * down - 2 * mean[1] * down * along + mean[0] * along * along) / all;
  return std::exp(-square / 8) * std::pow(determinant_2x2(*first) * determinant_2x2(*second), 0.25) / std::sqrt(all);
}

std::vector<HeadAlarm> alarms_of(const GaussianHeads& all) {
  using Kind = HeadAlarm::Kind;
  std::vector<HeadAlarm> out;
  for (size_t layer = 0; layer < all.layers.size(); ++layer) {
    const std::vector<GaussianHead>& heads = all.layers[layer].heads;
    for (size_t h = 0; h < heads.size(); ++h) {
      const GaussianHead& head = heads[h];
      const auto [least, most] = head.eigenvalues();
      const auto add = [&](Kind kind, const std::string& text, std::optional<size_t> twin = {}) {
        out.push_back({kind, layer, h, twin, text});
      };
      const std::string shape =
          head.isotropic() ? "alpha is " + head_number_text(head.learned[0]) : "the smallest precision is " + head_number_text(least);
      if (!(least > 0) || !std::isfinite(most))
        add(Kind::no_gaussian, shape + ": its weights do not fall with the distance, so it has no covariance");
      else if (const double deviation = std::sqrt(0.5 / least); deviation > static_cast<double>(std::max(all.grid[0], all.grid[1])))
        add(Kind::everywhere,
            shape + ": a deviation of " + head_number_text(deviation) + " tokens is wider than the image, it averages over all of it");
      else if (least > kMaxPrecision)
        add(Kind::one_key, (head.isotropic() ? shape : "the precision is at least " + head_number_text(least)) +
                               ": one key has all the weight, and training cannot move it");
      const auto [down, along] = head.looks_at();
      if (!std::isfinite(down) || !std::isfinite(along) || std::abs(down) > static_cast<double>(all.grid[0] - 1) ||
          std::abs(along) > static_cast<double>(all.grid[1] - 1))
        add(Kind::outside, "it attends " + head_number_text(down) + " rows down and " + head_number_text(along) +
                               " columns right, outside of any image of " + std::to_string(all.grid[0]) + " x " +
                               std::to_string(all.grid[1]) + " tokens");
      for (size_t other = 0; other < h; ++other)
        if (head_overlap(head, heads[other]) > kTwinOverlap)
          add(Kind::twins, "it has the same center and width as head " + std::to_string(other) + ": one of them is redundant", other);
    }
  }
  return out;
}

}  // namespace heed
