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

double tenth(double x) { return std::round(10 * x) / 10; }

struct ToSvg {
  std::ostream& out;
  const SvgOptions& options;

  // attribute: "fill" or "stroke"
  void paint(const char* attribute, Colour colour) const {
    const auto ink =
        std::find_if(options.inks.begin(), options.inks.end(), [&](const SvgOptions::Ink& each) { return each.colour == colour; });
    if (ink == options.inks.end())
      out << ' ' << attribute << "=\"" << hex(colour) << '"';
    else
      out << " class=\"" << ink->name << "\" color=\"" << hex(colour) << "\" " << attribute << "=\"currentColor\"";
  }
  void path(const std::vector<Drawing::Point>& points) const {
    out << "<path d=\"";
    for (size_t i = 0; i < points.size(); ++i) out << (i == 0 ? 'M' : 'L') << tenth(points[i].x) << ' ' << tenth(points[i].y);
  }

  void operator()(const Drawing::Rectangle& item) const {
    out << "<rect x=\"" << item.x << "\" y=\"" << item.y << "\" width=\"" << item.width << "\" height=\"" << item.height << '"';
    paint("fill", item.colour);
    out << "/>\n";
  }
  void operator()(const Drawing::Line& item) const {
    path(item.points);
    out << "\" fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" stroke-width=\"" << item.thickness << '"';
    if (item.dashed) out << " stroke-dasharray=\"" << kDash * item.thickness << ' ' << kGap * item.thickness << '"';
    paint("stroke", item.colour);
    out << "/>\n";
  }
  void operator()(const Drawing::Area& item) const {
    path(item.points);
    out << "Z\" fill-opacity=\"" << item.opacity << '"';
    paint("fill", item.colour);
    out << "/>\n";
  }
  void operator()(const Drawing::Dot& item) const {
    out << "<circle cx=\"" << tenth(item.x) << "\" cy=\"" << tenth(item.y) << "\" r=\"" << item.radius << '"';
    paint("fill", item.colour);
    out << "/>\n";
  }
  void operator()(const Drawing::Curve& item) const {
    const double third = (item.to_x - item.x) / 3;  // makes x linear in the curve parameter
    out << "<path d=\"M" << item.x << ' ' << item.y << 'C' << item.x + third << ' ' << item.y << ' ' << item.to_x - third << ' '
        << item.to_y << ' ' << item.to_x << ' ' << item.to_y << "\" fill=\"none\" stroke=\"" << hex(item.colour) << "\" stroke-width=\""
        << item.thickness << "\" stroke-opacity=\"" << item.opacity << "\"/>\n";
  }
  void operator()(const Drawing::Text& item) const {
    constexpr const char* anchors[] = {"start", "middle", "end"};
    out << "<text x=\"" << item.x << "\" y=\"" << item.y << "\" font-size=\"" << item.size << '"';
    paint("fill", item.colour);
    out << " text-anchor=\"" << anchors[static_cast<int>(item.anchor)] << '"';
    if (item.upward) out << " transform=\"rotate(-90 " << item.x << ' ' << item.y << ")\"";
    out << '>' << escape_markup(item.text) << "</text>\n";
  }
  void operator()(const Drawing::Image& item) const {
    const std::string bytes = png_bytes(item.image);
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
  const double position = (share > 0 ? std::min(share, 1.0) : 0) * static_cast<double>(kHeat.size() - 1);  // NaN gives 0
  const size_t below = std::min(static_cast<size_t>(position), kHeat.size() - 2);
  return mixed(kHeat[below], kHeat[below + 1], position - static_cast<double>(below));
}

Drawing::Drawing(int64_t width, int64_t height) : width_(width), height_(height) {
  check(width >= 1 && height >= 1, "drawing: ", width, " x ", height, " pixels, expected 1 or more");
}

std::string Drawing::svg(const SvgOptions& options) const {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width_ << "\" height=\"" << height_ << "\" viewBox=\"0 0 " << width_ << ' '
      << height_ << "\" font-family=\"" << escape_markup(options.font) << "\" dominant-baseline=\"central\"";
  if (!options.label.empty()) out << " role=\"img\" aria-label=\"" << escape_markup(options.label) << '"';
  out << ">\n";
  if (!options.style.empty()) out << "<style>" << options.style << "</style>\n";
  if (options.paper) out << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (const Item& item : items_) std::visit(ToSvg{out, options}, item);
  out << "</svg>\n";
  return out.str();
}

}  // namespace heed
