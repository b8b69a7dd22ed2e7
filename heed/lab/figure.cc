#include "heed/lab/figure.h"

#include <algorithm>
#include <cmath>

#include "heed/lab/measure.h"

namespace heed::lab {
namespace {

struct Bounds {
  double least = 1e300, most = -1e300;

  void add(const std::vector<double>& values, bool above_zero = false) {
    for (double value : values)
      if (std::isfinite(value) && (!above_zero || value > 0)) least = std::min(least, value), most = std::max(most, value);
  }
  void set(std::optional<double>& below, std::optional<double>& above, double margin = 0) const {
    if (least > most) return;
    if (!below) below = least - margin * (most - least);
    if (!above) above = most + margin * (most - least);
  }
};

// Log axes add their own margin.
void set_axis(const Bounds& bounds, Axis& axis, double margin) {
  const bool from_zero = !axis.log && bounds.least >= 0 && bounds.least < 0.4 * bounds.most;
  if (from_zero && !axis.least) axis.least = 0;
  bounds.set(axis.least, axis.most, axis.log ? 0 : margin);
}

}  // namespace

HeatMap heat_map(const Tensor& matrix, const std::string& down, const std::string& across) {
  check(matrix.rank() == 2, "heat map: found shape ", matrix.shape(), ", expected (rows, columns)");
  return {.rows = matrix.size(0), .columns = matrix.size(1), .values = values_of(matrix), .down = down, .across = across};
}

Figure figure(std::string title, std::string caption, std::vector<Plot> side_by_side) {
  Figure out{.title = std::move(title), .caption = std::move(caption)};
  out.frames.push_back({.plots = std::move(side_by_side)});
  return out;
}
Figure figure(std::string title, std::string caption, Plot plot) {
  return figure(std::move(title), std::move(caption), std::vector<Plot>{std::move(plot)});
}

void fix_axes(Figure& film) {
  if (film.frames.size() < 2) return;
  for (size_t place = 0; place < film.frames[0].plots.size(); ++place) {
    Bounds across, up, heat;
    for (const Frame& frame : film.frames) {
      check(frame.plots.size() == film.frames[0].plots.size(), "figure: a frame of '", film.title, "' has ", frame.plots.size(),
            " plots, expected ", film.frames[0].plots.size());
      if (const auto* lines = std::get_if<Lines>(&frame.plots[place].body))
        for (const Series& series : lines->series) {
          across.add(series.x, lines->across.log);
          for (const auto* values : {&series.y, &series.low, &series.high}) up.add(*values, lines->up.log);
        }
      if (const auto* bars = std::get_if<Bars>(&frame.plots[place].body))
        for (const BarSet& set : bars->sets)
          for (const auto* values : {&set.values, &set.low, &set.high}) up.add(*values, bars->up.log);
      if (const auto* map = std::get_if<HeatMap>(&frame.plots[place].body)) heat.add(map->values);
    }
    for (Frame& frame : film.frames) {
      if (auto* lines = std::get_if<Lines>(&frame.plots[place].body)) set_axis(across, lines->across, 0), set_axis(up, lines->up, 0.04);
      if (auto* bars = std::get_if<Bars>(&frame.plots[place].body))
        if (!bars->up.most) bars->up.most = std::max(up.most, 0.0);
      if (auto* map = std::get_if<HeatMap>(&frame.plots[place].body)) {
        const double largest = std::max(std::abs(heat.least), std::abs(heat.most));
        (map->diverging ? Bounds{-largest, largest} : heat).set(map->least, map->most);
      }
    }
  }
}

}  // namespace heed::lab
