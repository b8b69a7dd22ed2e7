#include "heed/io/drawing.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "heed/io/markup.h"

namespace heed {
namespace {

std::string hex(Colour colour) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out = "#";
  for (uint8_t part : {colour.red, colour.green, colour.blue}) {
    out += digits[part / 16];
    out += digits[part % 16];
  }
  return out;
}

struct ToSvg {
  std::ostream& out;

  void operator()(const Drawing::Rectangle& item) const {
    out << "<rect x=\"" << item.x << "\" y=\"" << item.y << "\" width=\"" << item.width << "\" height=\"" << item.height << "\" fill=\""
        << hex(item.colour) << "\"/>\n";
  }
  void operator()(const Drawing::Curve& item) const {
    const double third = (item.to_x - item.x) / 3;  // so x grows evenly along the curve
    out << "<path d=\"M" << item.x << ' ' << item.y << 'C' << item.x + third << ' ' << item.y << ' ' << item.to_x - third << ' '
        << item.to_y << ' ' << item.to_x << ' ' << item.to_y << "\" fill=\"none\" stroke=\"" << hex(item.colour) << "\" stroke-width=\""
        << item.thickness << "\" stroke-opacity=\"" << item.opacity << "\"/>\n";
  }
  void operator()(const Drawing::Text& item) const {
    constexpr const char* anchors[] = {"start", "middle", "end"};
    out << "<text x=\"" << item.x << "\" y=\"" << item.y << "\" font-size=\"" << item.size << "\" fill=\"" << hex(item.colour)
        << "\" text-anchor=\"" << anchors[static_cast<int>(item.anchor)] << '"';
    if (item.upward) out << " transform=\"rotate(-90 " << item.x << ' ' << item.y << ")\"";
    out << '>' << in_markup(item.text) << "</text>\n";
  }
  void operator()(const Drawing::Image& item) const {
    const std::string bytes = png_bytes(item.picture);
    out << "<image x=\"" << item.x << "\" y=\"" << item.y << "\" width=\"" << item.width << "\" height=\"" << item.height
        << "\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,"
        << base64(std::as_bytes(std::span(bytes))) << "\"/>\n";
  }
};

}  // namespace

Colour mixed(Colour below, Colour above, double share) {
  const auto mix = [&](uint8_t a, uint8_t b) { return static_cast<uint8_t>(std::lround(a + (b - a) * share)); };
  return {mix(below.red, above.red), mix(below.green, above.green), mix(below.blue, above.blue)};
}

Colour heat(double share) {
  const double place = (share > 0 ? std::min(share, 1.0) : 0) * static_cast<double>(kHeat.size() - 1);  // what is no number is nothing
  const size_t below = std::min(static_cast<size_t>(place), kHeat.size() - 2);
  return mixed(kHeat[below], kHeat[below + 1], place - static_cast<double>(below));
}

Drawing::Drawing(int64_t width, int64_t height) : width_(width), height_(height) {
  check(width >= 1 && height >= 1, "drawing: ", width, " x ", height, " pixels, expected 1 or more");
}

std::string Drawing::svg() const {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width_ << "\" height=\"" << height_ << "\" viewBox=\"0 0 " << width_ << ' '
      << height_
      << "\" font-family=\"monospace\" dominant-baseline=\"central\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (const Item& item : items_) std::visit(ToSvg{out}, item);
  out << "</svg>\n";
  return out.str();
}

}  // namespace heed
