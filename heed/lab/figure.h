// Figures of an experiment: lines, heat maps, bars and images, side by side, with several frames moved by a slider.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/io/image.h"

namespace heed::lab {

struct Axis {
  std::string name = {};
  bool log = false;
  std::optional<double> least = {}, most = {};  // default: the range of the data
};

enum class Mark { line, dashed, points, both };
struct Series {
  std::string name = {};
  std::vector<double> x = {}, y = {};
  Mark mark = Mark::line;
  std::vector<double> low = {}, high = {};  // a band around y; empty: none
};
struct Lines {
  Axis across = {}, up = {};
  std::vector<Series> series = {};
};

struct HeatMap {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};              // rows * columns
  std::string down = {}, across = {};           // axis labels of rows and columns
  std::optional<double> least = {}, most = {};  // range of the colours
  bool diverging = false;                       // signed values: blue below 0, red above
  Image under = {};                             // drawn underneath, for attention maps over an image
};
HeatMap heat_map(const Tensor& matrix, const std::string& down = {}, const std::string& across = {});  // matrix: (rows, columns)

struct BarSet {
  std::string name = {};
  std::vector<double> values = {};          // one per group
  std::vector<double> low = {}, high = {};  // whiskers; empty: none
};
struct Bars {
  Axis up = {};
  std::vector<std::string> groups = {};
  std::vector<BarSet> sets = {};
};

struct Plot {
  std::string title = {};  // may be empty
  std::variant<Lines, HeatMap, Bars, Image> body = {};
};

struct Frame {
  std::string value = {};  // value of the figure's parameter
  std::vector<Plot> plots = {};
};
struct Figure {
  std::string title = {}, caption = {};
  std::vector<Frame> frames = {};
  std::string parameter = {};  // what the slider sets, for example "β"; empty for a single frame
};
Figure figure(std::string title, std::string caption, Plot plot);
Figure figure(std::string title, std::string caption, std::vector<Plot> side_by_side);

// Gives all frames the same axis and colour ranges, where none is set, so that the data moves and not the axes.
void fix_axes(Figure& film);

}  // namespace heed::lab
