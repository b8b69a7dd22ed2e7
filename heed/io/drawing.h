// Vector drawings (rectangles, lines, areas, dots, curves, text, images) that are written as SVG or rasterized to pixels.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/image.h"

namespace HEED_API heed {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

// Colour map from 0 to 1: dark blue over red to pale yellow, in equal steps of CIELAB lightness.
inline constexpr std::array<Colour, 7> kHeat{
    {{0, 27, 63}, {80, 31, 123}, {159, 36, 121}, {216, 71, 109}, {251, 122, 96}, {255, 184, 118}, {255, 237, 178}}};
Colour heat(double share);                               // share: 0 to 1
Colour mixed(Colour below, Colour above, double share);  // share: weight of `above`

inline constexpr double kLetterStep = 0.6;    // advance of a letter relative to the font size
inline constexpr double kDash = 4, kGap = 3;  // of dashed lines, relative to their thickness

// SVG options. Items with the colour of an ink get its name as a class, so that CSS can change the colour.
struct SvgOptions {
  struct Ink {
    Colour colour;
    std::string name;
  };
  std::vector<Ink> inks = {};
  std::string font = "monospace", style = {};  // style: CSS
  std::string label = {};                      // aria-label, for screen readers
  bool paper = true;                           // white background
};

class Drawing {
 public:
  Drawing(int64_t width, int64_t height);  // white

  enum class Anchor { start, middle, end };
  struct Rectangle {
    double x, y, width, height;
    Colour colour;
  };
  struct Point {
    double x, y;
  };
  struct Line {  // polyline
    std::vector<Point> points;
    Colour colour;
    double thickness = 1;
    bool dashed = false;
  };
  struct Area {  // polygon
    std::vector<Point> points;
    Colour colour;
    double opacity = 1;
  };
  struct Dot {
    double x, y, radius;
    Colour colour;
  };
  struct Curve {  // from (x, y) to (to_x, to_y) with to_x > x; horizontal at both ends
    double x, y, to_x, to_y;
    Colour colour;
    double opacity = 1, thickness = 1;
  };
  struct Text {  // UTF-8; y is the vertical centre
    double x, y;
    std::string text;
    double size = 10;
    Anchor anchor = Anchor::start;
    bool upward = false;
    Colour colour = {34, 34, 34};
  };
  struct Image {  // not interpolated
    double x, y, width, height;
    heed::Image image;
  };
  using Item = std::variant<Rectangle, Line, Area, Dot, Curve, Text, Image>;

  void add(Item item) { items_.push_back(std::move(item)); }
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }

  std::string svg(const SvgOptions& options = {}) const;
  heed::Image pixels(int64_t scale = 1) const;  // text in the bitmap font of letters.h; missing letters are boxes

 private:
  int64_t width_, height_;
  std::vector<Item> items_ = {};
};

}  // namespace heed
