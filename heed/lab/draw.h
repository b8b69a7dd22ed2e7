// Figures as drawings, and drawings as SVG that follows the reader's choice of light or dark.
#pragma once

#include <string>

#include "heed/io/drawing.h"
#include "heed/lab/figure.h"

namespace heed::lab {

Drawing drawing_of(const Plot& plot, bool alone = true);  // alone: larger than beside others
Drawing drawing_of(const Frame& frame);                   // its plots beside each other
std::string svg_file(const Drawing& drawing);
std::string svg_in_page(const Drawing& drawing, const std::string& label);  // colours are the page's

// --- for the files that draw
inline constexpr Colour kInk{28, 32, 36}, kFaint{106, 113, 120}, kGrid{228, 229, 227};
inline constexpr double kPlotText = 12.5, kTickText = 11.5;
Colour series_colour(size_t series);

struct Place {
  double x, y, width, height;
};
Place place_for(const Plot& plot, bool alone);  // at 0, 0
void draw_lines(Drawing& to, const Lines& lines, Place place);
void draw_bars(Drawing& to, const Bars& bars, Place place);
void draw_heat_map(Drawing& to, const HeatMap& map, Place place);
void draw_picture(Drawing& to, const Picture& picture, Place place);

double text_width(std::string_view text, double size);
// Names with their colours in rows from the top of a place, which is made smaller by them.
struct Legend {
  std::string name;
  Colour colour;
  Mark mark;
};
void draw_legend(Drawing& to, const std::vector<Legend>& legend, Place& place);

// From numbers of an axis to places between two points, with ticks.
class Scale {
 public:
  Scale(const Axis& axis, double least, double most);  // of the numbers
  bool shows(double value) const;                      // a number, and on a log axis above 0
  double share(double value) const;                    // 0 to 1 along the axis, clamped
  struct Tick {
    double share;
    std::string text;
  };
  std::vector<Tick> ticks(int about) const;

 private:
  bool log_;
  double least_, most_;
};

}  // namespace heed::lab
