// Shapes are signed distance functions evaluated at pixel centres, which gives antialiased edges with one sample per pixel.
#include "heed/data/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/data/painted_shapes.h"

namespace heed {
namespace {

using Point = PaintedPoint;
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

Rgb any_colour(Draws& draws, double low, double high) {
  return {draws.between(low, high), draws.between(low, high), draws.between(low, high)};
}

double sum_of(const Rgb& colour) { return colour[0] + colour[1] + colour[2]; }

Image draw_shape(int64_t kind, int64_t side, RandomKey key) {
  Draws draws(key);
  const auto whole = static_cast<double>(side);
  PaintedShape shape{.kind = kind, .radius = whole * draws.between(0.28, 0.44)};
  const double margin = std::max(0.0, whole / 2 - shape.radius);
  shape.middle = {whole / 2 + draws.between(-margin, margin), whole / 2 + draws.between(-margin, margin)};
  shape.angle = draws.between(-0.6, 0.6);  // small enough that an arrow still points up
  PaintedBackground background{.middle = shape.middle};
  background.direction = draws.between(0, 2 * std::numbers::pi);
  background.start = any_colour(draws, 5, 125);
  background.end = any_colour(draws, 5, 125);
  shape.fill = any_colour(draws, 70, 255);
  while (sum_of(shape.fill) < std::max(sum_of(background.start), sum_of(background.end)) + 150) shape.fill = any_colour(draws, 70, 255);
  background.noise = draws.between(3, 20);
  return paint_shapes(side, std::span(&shape, 1), background, Draws(key, 1));
}

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> out;
  for (const ShapeKind& kind : kKinds) out.emplace_back(kind.name);
  return out;
}

Image paint_shapes(int64_t side, std::span<const PaintedShape> shapes, const PaintedBackground& background, Draws noise) {
  const auto whole = static_cast<double>(side);
  const double gx = std::cos(background.direction), gy = std::sin(background.direction);
  std::vector<Point> turns;  // cosine and sine of each angle
  for (const PaintedShape& shape : shapes) turns.push_back({std::cos(shape.angle), std::sin(shape.angle)});
  Image out{side, side};
  out.pixels.reserve(static_cast<size_t>(3 * side * side));
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x) {
      const Point pixel{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5}, from = pixel - background.middle;
      const double along = std::clamp(0.5 + (gx * from.x + gy * from.y) / whole, 0.0, 1.0);
      Rgb colour;
      for (size_t channel = 0; channel < 3; ++channel)
        colour[channel] = background.start[channel] + along * (background.end[channel] - background.start[channel]);
      for (size_t i = 0; i < shapes.size(); ++i) {
        const PaintedShape& shape = shapes[i];
        const auto [c, s] = turns[i];
        const double radius = shape.radius;
        const Point at = pixel - shape.middle, rotated = {(c * at.x + s * at.y) / radius, (c * at.y - s * at.x) / radius};
        if (dot(rotated, rotated) >= 1.6) continue;  // farther away the shape has no effect
        const double inside = std::clamp(0.5 - radius * kKinds[static_cast<size_t>(shape.kind)].distance(rotated), 0.0, 1.0);
        for (size_t channel = 0; channel < 3; ++channel) colour[channel] += inside * (shape.fill[channel] - colour[channel]);
      }
      for (const double value : colour) {
        // The sum of two uniform numbers has a triangular distribution, a fast approximation of a normal one; deviation 1 / sqrt(6).
        const uint32_t bits = noise.bits();
        const double sample = (static_cast<double>(bits >> 16) + static_cast<double>(bits & 0xffff)) / 65536 - 1;
        out.pixels.push_back(static_cast<uint8_t>(std::clamp(value + background.noise * 2.45 * sample + 0.5, 0.0, 255.0)));
      }
    }
  return out;
}

ImageData synthetic_shapes(const ShapesOptions& options) {
  check(options.count >= 0 && options.side >= 8 && options.side <= 4096, "synthetic_shapes: found ", options.count, " images of side ",
        options.side, ", expected at least 0 images of side 8 to 4096");
  ImageData out{.source = "shapes", .classes = shape_names()};
  for (int64_t i = 0; i < options.count; ++i) out.labels.push_back(i % std::ssize(kKinds));
  out.image = [options](int64_t i) {
    check(i >= 0 && i < options.count, "image: found number ", i, ", expected one below ", options.count);
    return draw_shape(i % std::ssize(kKinds), options.side, {options.seed, static_cast<uint64_t>(i)});
  };
  out.name = [seed = options.seed](int64_t i) { return "shapes: image " + std::to_string(i) + " of seed " + std::to_string(seed); };
  return out;
}

}  // namespace heed
