// Drawings of rectangles, lines, areas, dots, curves, text and pictures, written as SVG or turned into pixels: one layout, both files.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heed/io/picture.h"

namespace heed {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

// From nothing to most: night blue over red to pale yellow, each step as much lighter as the one before (equal steps of CIELAB's L).
inline constexpr std::array<Colour, 7> kHeat{
    {{0, 27, 63}, {80, 31, 123}, {159, 36, 121}, {216, 71, 109}, {251, 122, 96}, {255, 184, 118}, {255, 237, 178}}};
Colour heat(double share);                               // of 0 to 1
Colour mixed(Colour below, Colour above, double share);  // share: of the one above

inline constexpr double kLetterStep = 0.6;    // how wide a letter is beside the size of its text
inline constexpr double kDash = 4, kGap = 3;  // of dashed lines, beside their thickness

// How a drawing looks as SVG. Whatever has the colour of an ink gets its name as a class, so that a style can give it another colour.
struct SvgLook {
  struct Ink {
    Colour colour;
    std::string name;
  };
  std::vector<Ink> inks = {};
  std::string font = "monospace", style = {};  // style: CSS
  std::string label = {};                      // for those who cannot see it
  bool paper = true;                           // white below everything
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
  struct Line {  // through all points, straight between them
    std::vector<Point> points;
    Colour colour;
    double thickness = 1;
    bool dashed = false;
  };
  struct Area {  // within the line through all points and back to the first
    std::vector<Point> points;
    Colour colour;
    double opacity = 1;
  };
  struct Dot {
    double x, y, radius;
    Colour colour;
  };
  struct Curve {  // from (x, y) to (to_x, to_y), which is further right; level at both ends
    double x, y, to_x, to_y;
    Colour colour;
    double opacity = 1, thickness = 1;
  };
  struct Text {  // UTF-8; y is its middle
    double x, y;
    std::string text;
    double size = 10;
    Anchor anchor = Anchor::start;
    bool upward = false;
    Colour colour = {34, 34, 34};
  };
  struct Image {  // each pixel a square with sharp edges
    double x, y, width, height;
    Picture picture;
  };
  using Item = std::variant<Rectangle, Line, Area, Dot, Curve, Text, Image>;

  void add(Item item) { items_.push_back(std::move(item)); }
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }

  std::string svg(const SvgLook& look = {}) const;
  Picture pixels(int64_t scale = 1) const;  // text: the letters of letters.h; what they lack is a box

 private:
  int64_t width_, height_;
  std::vector<Item> items_ = {};
};

}  // namespace heed
