// Figures on a terminal: curves as sparklines, maps as shades.
#include <algorithm>
#include <cmath>

#include "heed/io/drawing.h"
#include "heed/lab/terminal.h"

namespace heed::lab {
namespace {

constexpr const char* kSparks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kShades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
constexpr size_t kSparkColumns = 48;
constexpr int64_t kMostShaded = 40;  // rows or columns of a map

using TextLines = std::vector<std::string>;

double on_axis(const Axis& axis, double value) { return axis.log ? std::log10(std::max(value, 1e-300)) : value; }

TextLines spark_lines(const Lines& lines) {
  double left = 1e300, right = -1e300, least = 1e300, most = -1e300;
  size_t widest = 0;
  const auto shown = [&](double y) { return !lines.up.log || y > 0; };  // zero has no place on a logarithmic axis
  for (const Series& series : lines.series) {
    widest = std::max(widest, display_width(series.name));
    for (size_t i = 0; i < series.x.size(); ++i) {
      left = std::min(left, on_axis(lines.across, series.x[i])), right = std::max(right, on_axis(lines.across, series.x[i]));
      if (shown(series.y[i]))
        least = std::min(least, on_axis(lines.up, series.y[i])), most = std::max(most, on_axis(lines.up, series.y[i]));
    }
  }
  if (lines.up.least) least = on_axis(lines.up, *lines.up.least);
  if (lines.up.most) most = on_axis(lines.up, *lines.up.most);
  TextLines out;
  for (const Series& series : lines.series) {
    if (series.x.empty()) continue;
    std::vector<std::pair<double, double>> points;
    for (size_t i = 0; i < series.x.size(); ++i) points.emplace_back(on_axis(lines.across, series.x[i]), on_axis(lines.up, series.y[i]));
    std::sort(points.begin(), points.end());
    std::string spark;
    for (size_t column = 0; column < kSparkColumns; ++column) {
      const double x = left + (right - left) * static_cast<double>(column) / (kSparkColumns - 1);
      const auto after = std::lower_bound(points.begin(), points.end(), std::pair(x - 1e-9 * (right - left), -1e300));
      if (after == points.end() || (after == points.begin() && after->first > x + (right - left) / kSparkColumns)) {
        spark += " ";
        continue;
      }
      const auto before = after == points.begin() ? after : after - 1;
      const double share = after->first > before->first ? std::clamp((x - before->first) / (after->first - before->first), 0.0, 1.0) : 1;
      const double y = std::max(before->second, least) + share * (std::max(after->second, least) - std::max(before->second, least));
      const double height = most > least ? (y - least) / (most - least) : 0.5;
      spark += kSparks[static_cast<int>(std::clamp(height * 8, 0.0, 7.0))];
    }
    const auto [first, last] = std::pair(series.y.front(), series.y.back());
    out.push_back(padded(series.name, widest) + "  " + spark + "  " + number_text(first) + " → " + number_text(last));
  }
  const auto bound = [&](double at) { return setting_text(lines.across.log ? std::pow(10, at) : at); };
  if (!out.empty()) out.push_back(std::string(widest + 2, ' ') + lines.across.name + " from " + bound(left) + " to " + bound(right));
  return out;
}

// With colours two rows per line: the upper half block and its background.
TextLines shade_lines(const HeatMap& map, bool colour) {
  if (map.rows > kMostShaded || map.columns > kMostShaded || map.values.empty())
    return {std::to_string(map.rows) + " x " + std::to_string(map.columns) + ", in the report"};
  const auto [low, high] = std::minmax_element(map.values.begin(), map.values.end());
  const double least = map.least.value_or(*low), most = map.most.value_or(*high);
  const auto share = [&](int64_t row, int64_t column) {
    const double value = map.values[static_cast<size_t>(row * map.columns + column)];
    return most > least ? std::clamp((value - least) / (most - least), 0.0, 1.0) : 0.5;
  };
  const auto code = [](const char* kind, Colour c) {
    return std::string("\x1b[") + kind + ";2;" + std::to_string(c.red) + ";" + std::to_string(c.green) + ";" + std::to_string(c.blue) + "m";
  };
  TextLines out;
  for (int64_t row = 0; row < map.rows; row += colour ? 2 : 1) {
    std::string line;
    for (int64_t column = 0; column < map.columns; ++column) {
      if (!colour) {
        line += kShades[static_cast<int>(std::clamp(share(row, column) * 5, 0.0, 4.0))];
        continue;
      }
      line += code("38", heat(share(row, column)));
      if (row + 1 < map.rows) line += code("48", heat(share(row + 1, column)));
      line += "▀\x1b[0m";
    }
    out.push_back(line);
  }
  return out;
}

TextLines bar_lines(const Bars& bars) {
  double most = 0;
  size_t widest = 0;
  const auto name = [&](size_t group, const BarSet& set) { return bars.groups[group] + (bars.sets.size() > 1 ? ", " + set.name : ""); };
  for (const BarSet& set : bars.sets)
    for (size_t i = 0; i < set.values.size(); ++i)
      most = std::max(most, set.values[i]), widest = std::max(widest, display_width(name(i, set)));
  TextLines out;
  for (size_t i = 0; i < bars.groups.size(); ++i)
    for (const BarSet& set : bars.sets) {
      std::string bar;
      const auto cells = static_cast<int>(most > 0 ? std::lround(32 * std::max(set.values[i], 0.0) / most) : 0);
      for (int cell = 0; cell < cells; ++cell) bar += "█";
      out.push_back(padded(name(i, set), widest) + "  " + bar + " " + number_text(set.values[i]));
    }
  return out;
}

struct AsText {
  const Terminal& terminal;
  TextLines operator()(const Lines& lines) const { return spark_lines(lines); }
  TextLines operator()(const HeatMap& map) const { return shade_lines(map, terminal.colour); }
  TextLines operator()(const Bars& bars) const { return bar_lines(bars); }
  TextLines operator()(const Image& image) const {
    return {"an image of " + std::to_string(image.width) + " x " + std::to_string(image.height) + ", in the report"};
  }
};

size_t visible_width(const std::string& line) {  // without colour codes
  size_t out = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t code = line.find('\x1b', at);
    out += display_width(std::string_view(line).substr(at, code == line.npos ? line.npos : code - at));
    if (code == line.npos) break;
    at = line.find('m', code) + 1;
  }
  return out;
}

// Places blocks side by side while they fit into the width.
TextLines side_by_side(const std::vector<TextLines>& blocks, size_t width) {
  TextLines out;
  for (size_t first = 0; first < blocks.size();) {
    size_t used = 0, last = first, rows = 0;
    std::vector<size_t> widths;
    for (; last < blocks.size(); ++last) {
      size_t block_width = 0;
      for (const std::string& line : blocks[last]) block_width = std::max(block_width, visible_width(line));
      if (last > first && used + 3 + block_width > width) break;
      used += block_width + (last > first ? 3 : 0);
      widths.push_back(block_width);
      rows = std::max(rows, blocks[last].size());
    }
    for (size_t row = 0; row < rows; ++row) {
      std::string line;
      for (size_t i = first; i < last; ++i) {
        const std::string cell = row < blocks[i].size() ? blocks[i][row] : "";
        line += (i > first ? "   " : "") + cell + std::string(widths[i - first] - visible_width(cell), ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out.push_back(line);
    }
    first = last;
  }
  return out;
}

}  // namespace

std::vector<std::string> figure_lines(const Figure& figure, const Terminal& terminal) {
  const size_t frames = figure.frames.size();
  std::vector<size_t> shown;  // the first, middle and last
  for (const size_t frame : {size_t{0}, frames / 2, frames - 1})
    if (frames > 0 && (shown.empty() || shown.back() != frame)) shown.push_back(frame);
  std::vector<TextLines> blocks;
  for (const size_t frame : shown)
    for (const Plot& plot : figure.frames[frame].plots) {
      TextLines block;
      if (frames > 1) block.push_back(figure.parameter + " = " + figure.frames[frame].value);
      if (!plot.title.empty()) block.push_back(plot.title);
      for (std::string& line : std::visit(AsText{terminal}, plot.body)) block.push_back(std::move(line));
      blocks.push_back(std::move(block));
    }
  return side_by_side(blocks, static_cast<size_t>(std::max(terminal.width, 40)) - 4);
}

}  // namespace heed::lab
