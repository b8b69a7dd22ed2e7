// Shapes are signed distance functions evaluated at pixel centres, which gives antialiased edges with one sample per pixel.
#include "heed/data/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/data/draws.h"

namespace heed {
namespace {

struct Point {
  double x, y;
};
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
double length(Point a) { return std::sqrt(dot(a, a)); }

using Outline = std::vector<Point>;  // corners of a polygon

Outline regular(int corners, double inner = 1) {  // inner: radius of every second corner, for stars
  Outline out;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * i / corners, radius = i % 2 == 1 ? inner : 1;
    out.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
  return out;
}

Outline heart() {
  Outline out;
  for (int i = 0; i < 24; ++i) {
    const double t = 2 * std::numbers::pi * i / 24, s = std::sin(t);
    out.push_back({s * s * s, -(13 * std::cos(t) - 5 * std::cos(2 * t) - 2 * std::cos(3 * t) - std::cos(4 * t)) / 16});
  }
  return out;
}

// Signed distance, negative inside (even-odd rule with a ray to the right).
double distance(const Outline& outline, Point p) {
  double nearest = 1e9;
  bool inside = false;
  for (size_t i = 0, previous = outline.size() - 1; i < outline.size(); previous = i++) {
    const Point a = outline[previous], along = outline[i] - a, to = p - a;
    const double share = std::clamp(dot(to, along) / dot(along, along), 0.0, 1.0);
    const Point away = {to.x - share * along.x, to.y - share * along.y};
    nearest = std::min(nearest, dot(away, away));
    if ((a.y > p.y) != (outline[i].y > p.y) && to.x < along.x * to.y / along.y) inside = !inside;
  }
  return inside ? -std::sqrt(nearest) : std::sqrt(nearest);
}

struct ShapeKind {
  const char* name;
  double (*distance)(Point p);  // signed distance for a shape of radius 1
};

const std::array<ShapeKind, 10> kKinds{{
    {"circle", [](Point p) { return length(p) - 0.9; }},
    {"ring", [](Point p) { return std::abs(length(p) - 0.73) - 0.22; }},
    {"moon",
     [](Point p) {
       return std::max(length(p) - 0.95, 0.85 - length(p - Point{0.55, 0}));
     }},
    {"triangle",
     [](Point p) {
       static const Outline outline = regular(3);
       return distance(outline, p);
     }},
    {"square", [](Point p) { return std::max(std::abs(p.x), std::abs(p.y)) - 0.8; }},
    {"cross",
     [](Point p) {
       static const Outline outline = {{-.3, -1}, {.3, -1}, {.3, -.3}, {1, -.3}, {1, .3},   {.3, .3},
                                       {.3, 1},   {-.3, 1}, {-.3, .3}, {-1, .3}, {-1, -.3}, {-.3, -.3}};
       return distance(outline, p);
     }},
    {"star",
     [](Point p) {
       static const Outline outline = regular(10, 0.45);
       return distance(outline, p);
     }},
    {"heart",
     [](Point p) {
       static const Outline outline = heart();
       return distance(outline, p);
     }},
    {"arrow",
     [](Point p) {
       static const Outline outline = {{0, -1}, {.85, -.05}, {.32, -.05}, {.32, .95}, {-.32, .95}, {-.32, -.05}, {-.85, -.05}};
       return distance(outline, p);
     }},
    {"bolt",
     [](Point p) {
       static const Outline outline = {{.25, -1}, {-.65, .15}, {-.1, .15}, {-.3, 1}, {.65, -.25}, {.1, -.25}, {.5, -1}};
       return distance(outline, p);
     }},
}};

using Rgb = std::array<double, 3>;

Rgb any_colour(Draws& draws, double low, double high) {
  return {draws.between(low, high), draws.between(low, high), draws.between(low, high)};
}

double sum_of(const Rgb& colour) { return colour[0] + colour[1] + colour[2]; }

Image draw_shape(const ShapeKind& kind, int64_t side, RandomKey key) {
  Draws draws(key);
  const auto whole = static_cast<double>(side);
  const double radius = whole * draws.between(0.28, 0.44), margin = std::max(0.0, whole / 2 - radius);
  const Point middle = {whole / 2 + draws.between(-margin, margin), whole / 2 + draws.between(-margin, margin)};
  const double angle_offset = draws.between(-0.6, 0.6), c = std::cos(angle_offset),
               s = std::sin(angle_offset);  // small enough that an arrow still points up
  // The background is a gradient between two dark colours in a random direction; the shape is clearly lighter.
  const double direction = draws.between(0, 2 * std::numbers::pi), gx = std::cos(direction), gy = std::sin(direction);
  const Rgb start_colour = any_colour(draws, 5, 125), end_colour = any_colour(draws, 5, 125);
  Rgb fill = any_colour(draws, 70, 255);
  while (sum_of(fill) < std::max(sum_of(start_colour), sum_of(end_colour)) + 150) fill = any_colour(draws, 70, 255);
  const double noise = draws.between(3, 20);

  Image out{side, side};
  out.pixels.reserve(static_cast<size_t>(3 * side * side));
  Draws noise_draws(key, 1);
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x) {
      const Point at = Point{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5} - middle;
      const Point rotated = {(c * at.x + s * at.y) / radius, (c * at.y - s * at.x) / radius};
      const bool near = dot(rotated, rotated) < 1.6;  // farther away the shape has no effect
      const double inside = near ? std::clamp(0.5 - radius * kind.distance(rotated), 0.0, 1.0) : 0;
      const double along = std::clamp(0.5 + (gx * at.x + gy * at.y) / whole, 0.0, 1.0);
      for (size_t channel = 0; channel < 3; ++channel) {
        const double background = start_colour[channel] + along * (end_colour[channel] - start_colour[channel]);
        // The sum of two uniform numbers has a triangular distribution, a fast approximation of a normal one; deviation 1 / sqrt(6).
        const uint32_t bits = noise_draws.bits();
        const double noise_sample = (static_cast<double>(bits >> 16) + static_cast<double>(bits & 0xffff)) / 65536 - 1;
        const double value = background + inside * (fill[channel] - background) + noise * 2.45 * noise_sample;
        out.pixels.push_back(static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0)));
      }
    }
  return out;
}

}  // namespace

ImageData synthetic_shapes(const ShapesOptions& options) {
  check(options.count >= 0 && options.side >= 8 && options.side <= 4096, "synthetic_shapes: found ", options.count, " images of side ",
        options.side, ", expected at least 0 images of side 8 to 4096");
  ImageData out{.source = "shapes"};
  for (const ShapeKind& kind : kKinds) out.classes.emplace_back(kind.name);
  for (int64_t i = 0; i < options.count; ++i) out.labels.push_back(i % std::ssize(kKinds));
  out.image = [options](int64_t i) {
    check(i >= 0 && i < options.count, "image: found number ", i, ", expected one below ", options.count);
    return draw_shape(kKinds[static_cast<size_t>(i % std::ssize(kKinds))], options.side, {options.seed, static_cast<uint64_t>(i)});
  };
  out.name = [seed = options.seed](int64_t i) { return "shapes: image " + std::to_string(i) + " of seed " + std::to_string(seed); };
  return out;
}

}  // namespace heed
