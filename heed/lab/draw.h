// Figures as drawings, and drawings as SVG with light and dark colours.
#pragma once

#include <string>

#include "heed/io/drawing.h"
#include "heed/lab/figure.h"

namespace heed::lab {

Drawing drawing_of(const Plot& plot, bool alone = true);  // alone: a single plot, drawn larger
Drawing drawing_of(const Frame& frame);                   // its plots side by side
std::string svg_file(const Drawing& drawing);
std::string svg_in_page(const Drawing& drawing, const std::string& label);  // uses the colours of the page's style sheet

// --- used by draw.cc and draw_plots.cc
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
void draw_image(Drawing& to, const Image& image, Place place);

double text_width(std::string_view text, double size);
// Draws the legend at the top of `place` and shrinks `place` by its height.
struct Legend {
  std::string name;
  Colour colour;
  Mark mark;
};
void draw_legend(Drawing& to, const std::vector<Legend>& legend, Place& place);

// Maps values of an axis to [0, 1], linear or log, and chooses ticks.
class Scale {
 public:
  Scale(const Axis& axis, double least, double most);  // range of the data
  bool shows(double value) const;                      // finite, and positive on a log axis
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
