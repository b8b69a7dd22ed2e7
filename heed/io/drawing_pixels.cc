// Rasterizes a drawing: antialiased shapes, bitmap letters.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "heed/core/shape.h"
#include "heed/io/drawing.h"
#include "heed/io/letters.h"
#include "heed/io/markup.h"

namespace heed {
namespace {

// Replacements for other accented Latin letters, U+00C0 to U+00FF: the font has no space for accents above capitals.
constexpr std::string_view kPlain = "AAAAAAACEEEEIIIIDNOOOOOxOUUUUYPsaaaaaaaceeeeiiiidnooooo/ouuuuypy";
constexpr char kMiddleDot = 0x7f;

// Index into the font, counted from 0x20; nullopt: not in the font.
std::optional<size_t> letter_index(char32_t point) {
  if (point == 0xb7) point = kMiddleDot;
  if (point == 0x2212 || point == 0x2013) point = '-';
  if (point == 0x202f || point == 0xa0) point = ' ';
  if (const size_t after_ascii = kLettersAfterAscii.find(point); after_ascii != std::u32string_view::npos) return 0x80 - 0x20 + after_ascii;
  if (point >= 0xc0 && point <= 0xff) point = static_cast<unsigned char>(kPlain[point - 0xc0]);
  if (point < 0x20 || point > 0x7f) return std::nullopt;
  return point - 0x20;
}

bool is_ink(char32_t point, int row, int column) {
  const std::optional<size_t> found = letter_index(point);
  if (!found) return row < kLetterHeight - 1 && (row == 0 || row == kLetterHeight - 2 || column == 0 || column == kLetterWidth - 1);
  constexpr size_t line = kLettersInBand * (kLetterWidth + 1);  // including the line end
  const size_t place = *found, band = place / kLettersInBand, inside = place % kLettersInBand;
  // The table starts with a line end; an empty line follows every band.
  const size_t at = 1 + band * (kLetterHeight * line + 1) + static_cast<size_t>(row) * line;
  return kLetters[at + inside * (kLetterWidth + 1) + static_cast<size_t>(column)] == '#';
}

// The segments of a dashed line.
std::vector<std::vector<Drawing::Point>> dashes(const Drawing::Line& line) {
  if (!line.dashed || line.points.empty()) return {line.points};
  std::vector<std::vector<Drawing::Point>> out{{line.points[0]}};
  double left = kDash * line.thickness;  // of the current dash or gap
  bool ink = true;
  for (size_t i = 1; i < line.points.size(); ++i) {
    Drawing::Point at = line.points[i - 1];
    const Drawing::Point to = line.points[i];
    for (double rest = std::hypot(to.x - at.x, to.y - at.y); rest > 0;) {
      const double step = std::min(rest, left), share = step / rest;
      at = {at.x + share * (to.x - at.x), at.y + share * (to.y - at.y)};
      if (ink) out.back().push_back(at);
      rest -= step;
      left -= step;
      if (left > 0) continue;
      ink = !ink;
      left = (ink ? kDash : kGap) * line.thickness;
      if (ink) out.push_back({at});
    }
  }
  return out;
}

double distance(Drawing::Point p, Drawing::Point a, Drawing::Point b) {  // of p from the segment ab
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

struct ToPixels {
  Image& out;

  void blend(int64_t x, int64_t y, Colour colour, double share) const {
    if (x < 0 || y < 0 || x >= out.width || y >= out.height || share <= 0) return;
    uint8_t* pixel = &out.pixels[static_cast<size_t>(3 * (y * out.width + x))];
    const Colour blended = mixed({pixel[0], pixel[1], pixel[2]}, colour, std::min(share, 1.0));
    pixel[0] = blended.red;
    pixel[1] = blended.green;
    pixel[2] = blended.blue;
  }
  static double overlap(double begin, double end, int64_t pixel) {
    const auto at = static_cast<double>(pixel);
    return std::max(0.0, std::min(end, at + 1) - std::max(begin, at));
  }
  static int64_t first(double x) { return static_cast<int64_t>(std::floor(x)); }
  static int64_t inside(double x, int64_t size) { return std::clamp<int64_t>(first(std::clamp(x, -1e9, 1e9)), 0, size); }
  static int64_t last(double x) { return static_cast<int64_t>(std::ceil(x)); }

  void operator()(const Drawing::Rectangle& item) const {
    const double right = item.x + item.width, bottom = item.y + item.height;
    for (int64_t y = first(item.y); y < last(bottom); ++y)
      for (int64_t x = first(item.x); x < last(right); ++x)
        blend(x, y, item.colour, overlap(item.x, right, x) * overlap(item.y, bottom, y));
  }

  // A pixel is blended once, with the largest coverage of all segments.
  void operator()(const Drawing::Line& item) const {
    const double half = item.thickness / 2;
    std::map<std::pair<int64_t, int64_t>, double> shares;
    for (const std::vector<Drawing::Point>& segment : dashes(item))
      for (size_t i = 0; i + 1 < segment.size() || (i == 0 && segment.size() == 1); ++i) {
        const Drawing::Point a = segment[i], b = segment[std::min(i + 1, segment.size() - 1)];
        for (int64_t y = inside(std::min(a.y, b.y) - half - 1, out.height); y < inside(std::max(a.y, b.y) + half + 2, out.height); ++y)
          for (int64_t x = inside(std::min(a.x, b.x) - half - 1, out.width); x < inside(std::max(a.x, b.x) + half + 2, out.width); ++x) {
            const double share = half + 0.5 - distance({static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5}, a, b);
            if (share > 0) shares[{y, x}] = std::max(shares[{y, x}], std::min(share, item.thickness));
          }
      }
    for (const auto& [place, share] : shares) blend(place.second, place.first, item.colour, share);
  }

  // Scanline fill with the even-odd rule, four scanlines per pixel row.
  void operator()(const Drawing::Area& item) const {
    constexpr int lines = 4;
    std::vector<double> row(static_cast<size_t>(out.width));
    for (int64_t y = 0; y < out.height; ++y) {
      std::fill(row.begin(), row.end(), 0);
      for (int line = 0; line < lines; ++line) {
        const double at = static_cast<double>(y) + (line + 0.5) / lines;
        std::vector<double> crossings;
        for (size_t i = 0; i < item.points.size(); ++i) {
          const Drawing::Point a = item.points[i], b = item.points[(i + 1) % item.points.size()];
          if ((a.y <= at) != (b.y <= at)) crossings.push_back(a.x + (at - a.y) / (b.y - a.y) * (b.x - a.x));
        }
        std::sort(crossings.begin(), crossings.end());
        for (size_t i = 0; i + 1 < crossings.size(); i += 2)
          for (int64_t x = inside(crossings[i], out.width); x < inside(crossings[i + 1] + 1, out.width); ++x)
            row[static_cast<size_t>(x)] += overlap(crossings[i], crossings[i + 1], x) / lines;
      }
      for (int64_t x = 0; x < out.width; ++x) blend(x, y, item.colour, item.opacity * row[static_cast<size_t>(x)]);
    }
  }

  void operator()(const Drawing::Dot& item) const { (*this)(Drawing::Line{{{item.x, item.y}}, item.colour, 2 * item.radius}); }

  // Column by column; the vertical extent grows with the slope.
  void operator()(const Drawing::Curve& item) const {
    const double width = item.to_x - item.x, height = item.to_y - item.y;
    for (int64_t x = first(item.x); x < last(item.to_x); ++x) {
      const double along = std::clamp((static_cast<double>(x) + 0.5 - item.x) / width, 0.0, 1.0);
      const double y = item.y + height * along * along * (3 - 2 * along), slope = height / width * 6 * along * (1 - along);
      const double half = item.thickness / 2 * std::sqrt(1 + slope * slope), share = item.opacity * overlap(item.x, item.to_x, x);
      for (int64_t row = first(y - half); row < last(y + half); ++row) blend(x, row, item.colour, share * overlap(y - half, y + half, row));
    }
  }

  void operator()(const Drawing::Text& item) const {
    const std::vector<Letter> points = letters_of(item.text);
    const int64_t scale = std::max<int64_t>(1, std::lround(item.size * kLetterStep / (kLetterWidth + 1)));
    const auto length = static_cast<double>(scale * (kLetterWidth + 1) * std::ssize(points));
    const double before = item.anchor == Drawing::Anchor::start ? 0 : item.anchor == Drawing::Anchor::end ? length : length / 2;
    const int64_t half = scale * (kLetterHeight - 1) / 2;
    for (size_t i = 0; i < points.size(); ++i)
      for (int row = 0; row < kLetterHeight; ++row)
        for (int column = 0; column < kLetterWidth; ++column) {
          if (!is_ink(points[i].point, row, column)) continue;
          const int64_t along = std::lround(-before) + scale * (static_cast<int64_t>(i) * (kLetterWidth + 1) + column),
                        across = scale * row - half;
          for (int64_t a = along; a < along + scale; ++a)
            for (int64_t b = across; b < across + scale; ++b)
              item.upward ? blend(std::lround(item.x) + b, std::lround(item.y) - a, item.colour, 1)
                          : blend(std::lround(item.x) + a, std::lround(item.y) + b, item.colour, 1);
        }
  }

  void operator()(const Drawing::Image& item) const {
    const Image& from = item.image;
    for (int64_t y = std::max<int64_t>(0, std::lround(item.y)); y < std::min<int64_t>(out.height, std::lround(item.y + item.height)); ++y)
      for (int64_t x = std::max<int64_t>(0, std::lround(item.x)); x < std::min<int64_t>(out.width, std::lround(item.x + item.width)); ++x) {
        const auto place = [](double at, double size, int64_t pixels) {
          return std::clamp<int64_t>(static_cast<int64_t>(at / size * static_cast<double>(pixels)), 0, pixels - 1);
        };
        const int64_t column = place(static_cast<double>(x) + 0.5 - item.x, item.width, from.width);
        const int64_t row = place(static_cast<double>(y) + 0.5 - item.y, item.height, from.height);
        const auto source = from.pixels.begin() + 3 * (row * from.width + column);
        std::copy(source, source + 3, out.pixels.begin() + 3 * (y * out.width + x));
      }
  }
};

struct Scaled {
  double by;

  void operator()(Drawing::Rectangle& item) const { item.x *= by, item.y *= by, item.width *= by, item.height *= by; }
  void operator()(Drawing::Line& item) const {
    for (Drawing::Point& point : item.points) point.x *= by, point.y *= by;
    item.thickness *= by;
  }
  void operator()(Drawing::Area& item) const {
    for (Drawing::Point& point : item.points) point.x *= by, point.y *= by;
  }
  void operator()(Drawing::Dot& item) const { item.x *= by, item.y *= by, item.radius *= by; }
  void operator()(Drawing::Curve& item) const { item.x *= by, item.y *= by, item.to_x *= by, item.to_y *= by, item.thickness *= by; }
  void operator()(Drawing::Text& item) const { item.x *= by, item.y *= by, item.size *= by; }
  void operator()(Drawing::Image& item) const { item.x *= by, item.y *= by, item.width *= by, item.height *= by; }
};

}  // namespace

Image Drawing::pixels(int64_t scale) const {
  const int64_t width = checked_multiply(width_, scale), height = checked_multiply(height_, scale);
  check(scale >= 1 && checked_multiply(width, height) <= kMaxImagePixels, "drawing: ", width, " x ", height, " pixels, expected at most ",
        kMaxImagePixels);
  heed::Image out{.width = width, .height = height, .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * width * height), 255)};
  for (Item item : items_) {
    std::visit(Scaled{static_cast<double>(scale)}, item);
    std::visit(ToPixels{out}, item);
  }
  return out;
}

}  // namespace heed
