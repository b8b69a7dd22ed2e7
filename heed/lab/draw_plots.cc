// Line plots, bars, heat maps and images.
#include <algorithm>
#include <cmath>

#include "heed/lab/draw.h"
#include "heed/lab/report.h"

namespace heed::lab {
namespace {

using Anchor = Drawing::Anchor;

constexpr double kBarRow = 15, kBarGap = 10, kColourBar = 10;

void put_text(Drawing& to, double x, double y, std::string text, Anchor anchor = Anchor::start, Colour colour = kFaint,
              bool upward = false) {
  to.add(Drawing::Text{.x = x, .y = y, .text = std::move(text), .size = kTickText, .anchor = anchor, .upward = upward, .colour = colour});
}

void put_rule(Drawing& to, double x, double y, double to_x, double to_y, Colour colour = kGrid) {
  to.add(Drawing::Line{.points = {{x, y}, {to_x, to_y}}, .colour = colour, .thickness = 1});
}

struct AxisRange {
  double least = 1e300, most = -1e300;
  void add(double value, bool log) {
    if (std::isfinite(value) && (!log || value > 0)) least = std::min(least, value), most = std::max(most, value);
  }
};

std::string short_number(double value) {  // three digits
  const double power = value == 0 ? 1 : std::pow(10, 2 - std::floor(std::log10(std::abs(value))));
  return setting_text(std::round(value * power) / power);
}

// Blue below the middle, red above.
Colour diverging_colour(double share) {
  constexpr Colour low{33, 102, 172}, middle{244, 243, 240}, high{190, 42, 62};
  return share < 0.5 ? mixed(low, middle, 2 * share) : mixed(middle, high, 2 * share - 1);
}

}  // namespace

Place place_for(const Plot& plot, bool alone) {
  const double title = plot.title.empty() ? 0 : 20;
  if (const auto* bars = std::get_if<Bars>(&plot.body)) {
    const double rows = static_cast<double>(bars->groups.size()) * (static_cast<double>(bars->sets.size()) * kBarRow + kBarGap);
    return {0, 0, alone ? 400.0 : 320.0, rows + title + (bars->sets.size() > 1 ? 24 : 4) + 34};
  }
  if (std::holds_alternative<Lines>(plot.body)) return {0, 0, alone ? 400.0 : 320.0, (alone ? 270.0 : 220.0) + title};
  const double width = alone ? 340 : 220;
  const auto [rows, columns] = [&]() -> std::pair<double, double> {
    if (const auto* map = std::get_if<HeatMap>(&plot.body)) return {static_cast<double>(map->rows), static_cast<double>(map->columns)};
    const auto& image = std::get<Image>(plot.body);
    return {static_cast<double>(image.height), static_cast<double>(image.width)};
  }();
  const double shape = std::clamp(rows / std::max(columns, 1.0), 0.15, 1.4);
  return {0, 0, width, shape * (width - 80) + 24 + title};
}

void draw_lines(Drawing& to, const Lines& lines, Place place) {
  AxisRange x, y;
  std::vector<Legend> legend;
  for (size_t s = 0; s < lines.series.size(); ++s) {
    const Series& series = lines.series[s];
    check(series.x.size() == series.y.size(), "figure: '", series.name, "' has ", series.x.size(), " x and ", series.y.size(), " y");
    check(series.low.size() == series.high.size() && (series.low.empty() || series.low.size() == series.y.size()), "figure: '", series.name,
          "' has a band of ", series.low.size(), " and ", series.high.size(), " numbers, expected ", series.y.size());
    for (double value : series.x) x.add(value, lines.across.log);
    for (const auto* values : {&series.y, &series.low, &series.high})
      for (double value : *values) y.add(value, lines.up.log);
    if (!series.name.empty()) legend.push_back({series.name, series_colour(s), series.mark});
  }
  Axis tight = lines.across;  // curves span the full width
  if (x.least < x.most) tight.least = tight.least.value_or(x.least), tight.most = tight.most.value_or(x.most);
  const Scale across(tight, x.least, x.most), up(lines.up, y.least, y.most);
  if (legend.size() > 1) draw_legend(to, legend, place);
  if (!lines.up.name.empty()) {
    put_text(to, place.x, place.y + 7, lines.up.name);
    place.y += 18, place.height -= 18;
  }
  const std::vector<Scale::Tick> levels = up.ticks(5);
  double margin = 0;
  for (const Scale::Tick& tick : levels) margin = std::max(margin, text_width(tick.text, kTickText));
  const double left = place.x + margin + 8, right = place.x + place.width - 8, top = place.y + 4, bottom = place.y + place.height - 34;
  const auto at = [&](double a, double b) {
    return Drawing::Point{left + across.share(a) * (right - left), bottom - up.share(b) * (bottom - top)};
  };
  for (const Scale::Tick& tick : levels) {
    const double level = bottom - tick.share * (bottom - top);
    put_rule(to, left, level, right, level);
    put_text(to, left - 7, level, tick.text, Anchor::end);
  }
  double free_x = -1e300;  // where the text of the last tick ends
  for (const Scale::Tick& tick : across.ticks(6)) {
    const double place_x = left + tick.share * (right - left), half = text_width(tick.text, kTickText) / 2;
    put_rule(to, place_x, bottom, place_x, bottom + 4, kFaint);
    if (place_x - half < free_x + 6) continue;
    put_text(to, place_x, bottom + 13, tick.text, Anchor::middle);
    free_x = place_x + half;
  }
  put_rule(to, left, bottom, right, bottom, kFaint);
  put_text(to, right, bottom + 28, lines.across.name, Anchor::end);

  // Bands are drawn below lines, and lines below points.
  std::vector<Drawing::Item> bands, curves, dots;
  for (size_t s = 0; s < lines.series.size(); ++s) {
    const Series& series = lines.series[s];
    const Colour colour = series_colour(s);
    std::vector<Drawing::Point> band, line;
    for (size_t i = 0; i < series.high.size(); ++i)
      if (across.shows(series.x[i]) && up.shows(series.high[i])) band.push_back(at(series.x[i], series.high[i]));
    for (size_t i = series.low.size(); i-- > 0;)
      if (across.shows(series.x[i]) && up.shows(series.high[i]))
        band.push_back({at(series.x[i], series.high[i]).x, up.shows(series.low[i]) ? at(series.x[i], series.low[i]).y : bottom});
    if (band.size() > 2) bands.push_back(Drawing::Area{.points = std::move(band), .colour = colour, .opacity = 0.18});
    const bool dashed = series.mark == Mark::dashed, dotted = series.mark == Mark::points || series.mark == Mark::both;
    const auto end_line = [&] {
      if (!line.empty() && series.mark != Mark::points)
        curves.push_back(Drawing::Line{.points = line, .colour = colour, .thickness = dashed ? 1.6 : 2.2, .dashed = dashed});
      line.clear();
    };
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!across.shows(series.x[i]) || !up.shows(series.y[i])) {  // a gap
        end_line();
        continue;
      }
      line.push_back(at(series.x[i], series.y[i]));
      if (dotted) dots.push_back(Drawing::Dot{line.back().x, line.back().y, 3.2, colour});
    }
    end_line();
  }
  for (auto* items : {&bands, &curves, &dots})
    for (Drawing::Item& item : *items) to.add(std::move(item));
}

void draw_bars(Drawing& to, const Bars& bars, Place place) {
  AxisRange reach;
  std::vector<Legend> legend;
  double margin = 0, values_margin = 0;
  for (const std::string& group : bars.groups) margin = std::max(margin, text_width(group, kTickText));
  for (size_t s = 0; s < bars.sets.size(); ++s) {
    const BarSet& set = bars.sets[s];
    check(set.values.size() == bars.groups.size(), "figure: '", set.name, "' has ", set.values.size(), " bars, expected ",
          bars.groups.size());
    for (const auto* values : {&set.values, &set.low, &set.high})
      for (double value : *values) reach.add(value, bars.up.log);
    for (double value : set.values) values_margin = std::max(values_margin, text_width(number_text(value), kTickText));
    legend.push_back({set.name, series_colour(s), Mark::line});
  }
  Axis axis = bars.up;
  if (!axis.log) axis.least = axis.least.value_or(std::min(reach.least, 0.0));
  if (axis.log && !axis.least) axis.least = reach.least / 2;
  if (!axis.most && reach.most <= 0) axis.most = 0.0;
  const Scale up(axis, reach.least, reach.most);
  if (legend.size() > 1) draw_legend(to, legend, place);
  margin = std::min(margin, place.width / 2);
  const double left = place.x + margin + 8, right = place.x + place.width - values_margin - 10, bottom = place.y + place.height - 34;
  const auto across = [&](double value) { return left + (up.shows(value) ? up.share(value) : 0) * (right - left); };
  for (const Scale::Tick& tick : up.ticks(4)) {
    put_rule(to, left + tick.share * (right - left), place.y, left + tick.share * (right - left), bottom);
    put_text(to, left + tick.share * (right - left), bottom + 11, tick.text, Anchor::middle);
  }
  put_text(to, right, bottom + 26, bars.up.name, Anchor::end);
  const double zero = axis.log ? left : across(0);
  double y = place.y + kBarGap / 2;
  for (size_t group = 0; group < bars.groups.size(); ++group) {
    put_text(to, left - 8, y + static_cast<double>(bars.sets.size()) * kBarRow / 2, bars.groups[group], Anchor::end, kInk);
    for (size_t s = 0; s < bars.sets.size(); ++s, y += kBarRow) {
      const BarSet& set = bars.sets[s];
      const double end = across(set.values[group]), middle = y + kBarRow / 2;
      to.add(Drawing::Rectangle{std::min(zero, end), y + 2, std::max(1.0, std::abs(end - zero)), kBarRow - 4, series_colour(s)});
      double text = std::max(end, zero);
      if (group < set.low.size() && group < set.high.size()) {
        put_rule(to, across(set.low[group]), middle, across(set.high[group]), middle, kInk);
        for (const double side : {set.low[group], set.high[group]}) put_rule(to, across(side), middle - 3, across(side), middle + 3, kInk);
        text = std::max(text, across(set.high[group]));
      }
      put_text(to, text + 5, middle, number_text(set.values[group]));
    }
    y += kBarGap;
  }
}

void draw_heat_map(Drawing& to, const HeatMap& map, Place place) {
  check(map.rows > 0 && map.columns > 0 && std::ssize(map.values) == map.rows * map.columns, "figure: a map of ", map.rows, " x ",
        map.columns, " has ", map.values.size(), " values");
  AxisRange reach;
  for (double value : map.values) reach.add(value, false);
  double least = map.least.value_or(reach.least), most = map.most.value_or(reach.most);
  if (map.diverging && !map.least && !map.most) most = std::max(std::abs(least), std::abs(most)), least = -most;
  const auto colour = [&](double value) {
    const double share = most > least ? std::clamp((value - least) / (most - least), 0.0, 1.0) : 0.5;
    return map.diverging ? diverging_colour(share) : heat(share);
  };
  Image image{.width = map.columns, .height = map.rows};
  if (map.under.width > 0) image.width = map.under.width, image.height = map.under.height;
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const int64_t row = y * map.rows / image.height, column = x * map.columns / image.width;
      Colour seen = colour(map.values[static_cast<size_t>(row * map.columns + column)]);
      if (map.under.width > 0) {
        const size_t from = static_cast<size_t>(3 * (y * image.width + x));
        seen = mixed({map.under.pixels[from], map.under.pixels[from + 1], map.under.pixels[from + 2]}, seen, 0.6);
      }
      for (const uint8_t part : {seen.red, seen.green, seen.blue}) image.pixels.push_back(part);
    }
  Image scale{.width = 1, .height = 64};
  for (int64_t y = 0; y < scale.height; ++y) {
    const Colour each = colour(most - (most - least) * (static_cast<double>(y) + 0.5) / static_cast<double>(scale.height));
    for (const uint8_t part : {each.red, each.green, each.blue}) scale.pixels.push_back(part);
  }
  const double left = place.x + (map.down.empty() ? 0 : 18), below = map.across.empty() ? 4 : 20, width = place.x + place.width - 62 - left;
  const double height = place.height - below,
               cell = std::min(width / static_cast<double>(map.columns), height / static_cast<double>(map.rows));
  const double wide = cell * static_cast<double>(map.columns), high = cell * static_cast<double>(map.rows), x = left + (width - wide) / 2;
  to.add(Drawing::Image{x, place.y, wide, high, std::move(image)});
  if (!map.down.empty()) put_text(to, x - 10, place.y + high / 2, map.down, Anchor::middle, kFaint, true);
  if (!map.across.empty()) put_text(to, x + wide / 2, place.y + high + 12, map.across, Anchor::middle);
  to.add(Drawing::Image{x + wide + 10, place.y, kColourBar, high, std::move(scale)});
  if (high > 20) {
    put_text(to, x + wide + 10 + kColourBar + 4, place.y + 5, short_number(most));
    put_text(to, x + wide + 10 + kColourBar + 4, place.y + high - 5, short_number(least));
  }
}

void draw_image(Drawing& to, const Image& image, Place place) {
  check(image.width > 0 && image.height > 0, "figure: an image of ", image.width, " x ", image.height);
  const double size = std::min(place.width / static_cast<double>(image.width), place.height / static_cast<double>(image.height));
  const double width = size * static_cast<double>(image.width);
  to.add(Drawing::Image{place.x + (place.width - width) / 2, place.y, width, size * static_cast<double>(image.height), image});
}

}  // namespace heed::lab
