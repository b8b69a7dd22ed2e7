// Images of shapes in given places and colours: shared by the synthetic image sets.
#pragma once

#include <array>
#include <span>

#include "heed/data/draws.h"
#include "heed/io/image.h"

namespace heed {

struct PaintedPoint {
  double x, y;
};
using Rgb = std::array<double, 3>;

struct PaintedShape {
  int64_t kind = 0;              // in shape_names()
  PaintedPoint middle = {0, 0};  // in pixels
  double radius = 1, angle = 0;
  Rgb fill = {};
};
// A gradient between two colours, and noise.
struct PaintedBackground {
  PaintedPoint middle = {0, 0};  // where both colours are mixed equally
  double direction = 0;          // of the gradient, an angle
  Rgb start = {}, end = {};
  double noise = 0;  // standard deviation
};

std::vector<std::string> shape_names();
// Later shapes cover earlier ones.
Image paint_shapes(int64_t side, std::span<const PaintedShape> shapes, const PaintedBackground& background, Draws noise);

}  // namespace heed
