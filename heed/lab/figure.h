// Figures of an experiment: lines, heat maps, bars and pictures, one or several side by side, and films of them that a slider moves.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/io/picture.h"

namespace heed::lab {

struct Axis {
  std::string name = {};
  bool log = false;
  std::optional<double> least = {}, most = {};  // without them as far as the numbers reach
};

enum class Mark { line, dashed, points, both };
struct Series {
  std::string name = {};
  std::vector<double> x = {}, y = {};
  Mark mark = Mark::line;
  std::vector<double> low = {}, high = {};  // a band round y; empty: none
};
struct Lines {
  Axis across = {}, up = {};
  std::vector<Series> series = {};
};

struct HeatMap {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};              // rows * columns
  std::string down = {}, across = {};           // what rows and columns are
  std::optional<double> least = {}, most = {};  // of the colours
  bool diverging = false;                       // values of either sign: blue below 0, red above
  Picture under = {};                           // shines through, for maps over a picture
};
HeatMap heat_map(const Tensor& matrix, const std::string& down = {}, const std::string& across = {});  // matrix: (rows, columns)

struct BarSet {
  std::string name = {};
  std::vector<double> values = {};          // one a group
  std::vector<double> low = {}, high = {};  // whiskers; empty: none
};
struct Bars {
  Axis up = {};
  std::vector<std::string> groups = {};
  std::vector<BarSet> sets = {};
};

struct Plot {
  std::string title = {};  // may be empty where the figure's says it all
  std::variant<Lines, HeatMap, Bars, Picture> body = {};
};

struct Frame {
  std::string value = {};  // of the figure's parameter
  std::vector<Plot> plots = {};
};
struct Figure {
  std::string title = {}, caption = {};
  std::vector<Frame> frames = {};
  std::string parameter = {};  // what the slider sets, "β" for example; of one frame: nothing
};
Figure figure(std::string title, std::string caption, Plot plot);
Figure figure(std::string title, std::string caption, std::vector<Plot> side_by_side);

// One range for all frames of a film, where none was set: what moves shall be the numbers, not the axes.
void hold_still(Figure& film);

}  // namespace heed::lab
