// Number formatting and charts. A chart scales with the page: lines are SVG in a 1000 x 1000 box without a fixed aspect ratio, labels are
// HTML next to it, so that they keep their size on a phone.
#include "heed/train/report_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "heed/io/drawing.h"
#include "heed/io/markup.h"

namespace heed {
namespace {

constexpr size_t kMostPoints = 300;  // points per line

bool ends_in(const std::string& name, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return name.ends_with(end); });
}

bool is_share(const std::string& name) {
  return ends_in(name, {"accuracy", "top5", "f1", "precision", "recall", "calibration_error", "share_of_peak", "exact"});
}

std::string with_digits(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, std::clamp(value, -1e15, 1e15));
  return text.data();
}

// Enough digits to distinguish adjacent ticks.
std::string tick_text(const std::string& figure, double value, double step) {
  if (value == 0) return is_share(figure) ? "0 %" : "0";
  if (is_share(figure)) return fixed(100 * value, step < 0.01 ? 1 : 0) + " %";
  if (std::abs(value) >= 10000) return fixed(value / 1000, 1) + " k";
  return step < 1e-4 ? figure_text("", value) : fixed(value, 5);
}

// Averages adjacent points if there are too many to draw.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<std::pair<double, double>> out;
  for (size_t k = 0; k < kMostPoints; ++k) {
    const size_t begin = k * points.size() / kMostPoints, end = (k + 1) * points.size() / kMostPoints;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) x += points[i].first, y += points[i].second;
    out.emplace_back(x / static_cast<double>(end - begin), y / static_cast<double>(end - begin));
  }
  return out;
}

struct Box {
  double left = 1e300, right = -1e300, least = 1e300, most = -1e300;
  double across(double x) const { return (x - left) / (right - left); }
  double up(double y) const { return (y - least) / (most - least); }
};

Box box_of(const Chart& chart) {
  Box box;
  for (const ChartLine& line : chart.lines)
    for (const auto& [x, y] : line.points) {
      box.left = std::min(box.left, x), box.right = std::max(box.right, x);
      box.least = std::min(box.least, y), box.most = std::max(box.most, y);
    }
  if (chart.left) box.left = std::min(box.left, *chart.left);
  if (chart.from_zero) box.least = std::min(box.least, 0.0);
  const bool shares = is_share(chart.figure);
  const double margin = box.most > box.least ? 0.04 * (box.most - box.least) : std::max(std::abs(box.most) * 0.1, 1e-6);
  if (!(chart.from_zero && box.least == 0)) box.least = box.least >= 0 ? std::max(0.0, box.least - margin) : box.least - margin;
  box.most = shares ? std::min(std::max(1.0, box.most), box.most + margin) : box.most + margin;
  if (!(box.most > box.least)) box.most = box.least + margin;
  if (box.right <= box.left) box.left -= 0.5, box.right += 0.5;
  return box;
}

std::string path_of(const ChartLine& line, const Box& box) {
  std::string d;
  for (const auto& [x, y] : line.points) {
    d += d.empty() ? 'M' : 'L';
    d += fixed(1000 * box.across(x), 1) + ' ' + fixed(1000 - 1000 * box.up(y), 1);
  }
  if (line.points.size() == 1) d += "h0";  // round line caps draw a dot
  return d;
}

std::string legend_of(const Chart& chart, const Box& box) {
  std::string out = "<span class=\"legend\">";
  bool merged = false;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    const bool continues = i + 1 < chart.lines.size() && chart.lines[i + 1].run == line.run && chart.lines[i + 1].key == line.key;
    merged = merged || continues;
    if (continues) continue;
    out += "<span class=\"key run" + std::to_string(line.run) + "\"><i class=\"" + (line.thick ? "thick" : "thin") + " c" +
           std::to_string(line.run % 8) + "\"></i>" + escape_markup(line.key) + "</span>";
  }
  if (merged) out += "<span>thin: training, thick: validation</span>";
  std::vector<double> best;
  for (const ChartLine& line : chart.lines)
    if (line.best && std::find(best.begin(), best.end(), *line.best) == best.end()) best.push_back(*line.best);
  if (!best.empty())
    out += "<span class=\"key\"><i class=\"ring\"></i>best" + (best.size() == 1 ? " " + chart.across + " " + fixed(best[0], 0) : "") +
           "</span>";
  if (std::any_of(chart.marks.begin(), chart.marks.end(), [&](double x) { return x >= box.left && x <= box.right; }))
    out += "<span class=\"key\"><i class=\"dashes\"></i>" + escape_markup(chart.marked) + "</span>";
  return out + "</span>";
}

// A ring, drawn as zero-length lines with round caps, which keep their shape when the box is stretched.
std::string best_mark(const ChartLine& line, const Box& box) {
  const auto point =
      std::find_if(line.points.begin(), line.points.end(), [&](const auto& each) { return line.best && each.first >= *line.best; });
  if (point == line.points.end()) return "";
  const std::string d =
      " d=\"M" + fixed(1000 * box.across(point->first), 1) + " " + fixed(1000 - 1000 * box.up(point->second), 1) + "h0\"/>";
  const std::string run = "run" + std::to_string(line.run);
  return "<path class=\"best " + run + " c" + std::to_string(line.run % 8) + "\"" + d + "<path class=\"best inner " + run + "\"" + d;
}

std::string hover_data(const Chart& chart, const Box& box) {
  Json lines = Json::array();
  for (const ChartLine& line : chart.lines) {
    Json points = Json::array();
    for (const auto& [x, y] : line.points)
      points.push_back(
          {std::round(1e5 * box.across(x)) / 1e5, std::round(1e5 * box.up(y)) / 1e5, tick_text("", x, 1), figure_text(chart.figure, y)});
    lines.push_back({{"name", line.name}, {"run", line.run}, {"points", points}});
  }
  return escape_markup(lines.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string fixed(double value, int digits) {
  std::string out = with_digits(value, digits);
  if (digits > 0) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.ends_with('.')) out.pop_back();
  }
  return out == "-0" ? "0" : out;
}

std::string count_text(double count) {
  constexpr std::array<const char*, 5> units{"", " k", " M", " G", " T"};
  if (std::abs(count) < 10000) return fixed(count, 0);
  size_t unit = 0;
  for (; std::abs(count) >= 1000 && unit + 1 < units.size(); ++unit) count /= 1000;
  return with_digits(count, std::abs(count) >= 100 ? 0 : std::abs(count) >= 10 ? 1 : 2) + units[unit];
}

std::string figure_text(const std::string& name, double value) {
  if (!std::isfinite(value)) return "not a number";
  const double size = std::abs(value);
  if (is_share(name) && size <= 1.0001) return with_digits(100 * value, size > 0 && size < 0.1 ? 2 : 1) + " %";
  if (ends_in(name, {"bleu", "chrf"})) return with_digits(value, 2);
  if (size >= 1000) return count_text(value);
  if (value == std::round(value)) return with_digits(value, 0);
  if (size >= 0.001) return with_digits(value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::string readable(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  for (const auto& [from, to] : {std::pair("bleu", "BLEU"), std::pair("chrf", "chrF2"), std::pair("top5", "top 5"), std::pair("f1", "F1")})
    if (const size_t at = out.find(from); at != out.npos) out.replace(at, std::string_view(from).size(), to);
  return out;
}

double number_in(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_number() ? json[key].get<double>() : 0;
}
std::string text_in(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}
const Json& list_in(const Json& json, const char* key) {
  static const Json none = Json::array();
  return json.is_object() && json.contains(key) && json[key].is_array() ? json[key] : none;
}

std::vector<double> round_ticks(double least, double most, int about) {
  const double rough = (most - least) / about;
  // No ticks if the range is too small for double precision.
  if (!(rough > 1e-12 * std::max(std::abs(least), std::abs(most))) || !std::isfinite(rough)) return {};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
  std::vector<double> out;
  for (double at = std::ceil(least / step - 1e-9); at * step <= most + 1e-9 * step; ++at) out.push_back(at == 0 ? 0 : at * step);
  return out;
}

std::string chart_html(Chart chart) {
  std::erase_if(chart.lines, [](const ChartLine& line) { return line.points.empty(); });
  if (chart.lines.empty()) return "";
  for (ChartLine& line : chart.lines) line.points = thinned(line.points);
  const Box box = box_of(chart);
  std::string grid, labels, lines, aria_label = chart.title;
  const std::vector<double> levels = round_ticks(box.least, box.most, 5);
  for (double y : levels) {
    grid += "M0 " + fixed(1000 - 1000 * box.up(y), 1) + "H1000";
    labels += "<span class=\"ty\" style=\"bottom:" + fixed(100 * box.up(y), 2) + "%\">" +
              tick_text(chart.figure, y, levels.size() > 1 ? levels[1] - levels[0] : y) + "</span>";
  }
  for (double x : round_ticks(box.left, box.right, 6)) {
    if (x != std::round(x)) continue;  // epochs and steps are integers
    labels += "<span class=\"tx\" style=\"left:" + fixed(100 * box.across(x), 2) + "%\">" + tick_text("", x, 1) + "</span>";
  }
  std::string marks;
  for (double x : chart.marks)
    if (x >= box.left && x <= box.right) marks += "M" + fixed(1000 * box.across(x), 1) + " 0V1000";
  for (const ChartLine& line : chart.lines) {
    lines += "<path class=\"line run" + std::to_string(line.run) + " c" + std::to_string(line.run % 8) + (line.thick ? " thick" : " thin") +
             "\" d=\"" + path_of(line, box) + "\"/>" + best_mark(line, box);
    aria_label += "; " + line.name + " ends at " + figure_text(chart.figure, line.points.back().second);
    if (line.best) aria_label += ", best at " + chart.across + " " + fixed(*line.best, 0);
  }
  return "<figure class=\"card chart\"><figcaption><h3>" + escape_markup(chart.title) + "</h3>" + legend_of(chart, box) +
         "</figcaption><div class=\"plot\" data-lines=\"" + hover_data(chart, box) +
         "\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" + escape_markup(aria_label) +
         "\"><path class=\"grid\" d=\"" + grid + "\"/><path class=\"mark\" d=\"" + marks + "\"/>" + lines + "</svg>" + labels +
         "<span class=\"across\">" + escape_markup(chart.across) + "</span></div></figure>";
}

std::string section_html(const std::string& id, const std::string& title, const std::string& body) {
  return "<section id=\"" + id + "\" aria-labelledby=\"" + id + "-title\"><h2 id=\"" + id + "-title\">" + escape_markup(title) + "</h2>\n" +
         body + "</section>\n";
}

std::string details_html(const std::string& title, const std::string& body, bool open) {
  return std::string("<details") + (open ? " open" : "") + "><summary>" + escape_markup(title) + "</summary>" + body + "</details>\n";
}

std::string heat_legend_html(const std::string& low, const std::string& high) {
  std::string stops;
  for (const Colour& stop : kHeat)
    stops += (stops.empty() ? "" : ",") + std::string("rgb(") + std::to_string(stop.red) + " " + std::to_string(stop.green) + " " +
             std::to_string(stop.blue) + ")";
  return "<span class=\"scale\">" + low + " <i style=\"background:linear-gradient(90deg," + stops + ")\"></i> " + high + "</span>";
}

std::string missing_html(const std::string& file, const std::string& what) {
  return "<p class=\"faint\">There is no " + escape_markup(file) + " in this folder, which would contain " + escape_markup(what) +
         ".</p>\n";
}

}  // namespace heed
