#include "heed/lab/figure.h"

#include "heed/lab/measure.h"

namespace heed::lab {

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

}  // namespace heed::lab
