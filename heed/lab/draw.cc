#include "heed/lab/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed::lab {
namespace {

constexpr double kEdge = 6, kTitleRow = 20, kPlotGap = 14;
constexpr size_t kPlotsPerRow = 4;

// The colours of training reports.
constexpr std::array<Colour, 8> kSeries{
    {{53, 102, 196}, {212, 103, 42}, {23, 138, 108}, {176, 58, 142}, {143, 111, 0}, {109, 83, 200}, {194, 56, 74}, {75, 118, 131}}};

constexpr const char* kDarkStyle =
    "@media(prefers-color-scheme:dark){svg{background:#1b1e22}.ink{color:#e7e8ea}.faint{color:#969da5}.edge{color:#31363c}.c0{color:#"
    "7da6ff}"
    ".c1{color:#ff9d66}.c2{color:#4fcba6}.c3{color:#ec82c9}.c4{color:#d8b341}.c5{color:#ab97ff}.c6{color:#ff828f}.c7{color:#90bfcc}}"
    "@media(prefers-color-scheme:light){svg{background:#fff}}";

std::vector<SvgOptions::Ink> figure_inks() {
  std::vector<SvgOptions::Ink> out{{kInk, "ink"}, {kFaint, "faint"}, {kGrid, "edge"}};
  for (size_t i = 0; i < kSeries.size(); ++i) out.push_back({kSeries[i], "c" + std::to_string(i)});
  return out;
}

void draw_plot(Drawing& to, const Plot& plot, Place place) {
  if (!plot.title.empty()) {
    to.add(Drawing::Text{.x = place.x + place.width / 2,
                         .y = place.y + 8,
                         .text = plot.title,
                         .size = kPlotText,
                         .anchor = Drawing::Anchor::middle,
                         .colour = kInk});
    place.y += kTitleRow, place.height -= kTitleRow;
  }
  if (const auto* lines = std::get_if<Lines>(&plot.body)) draw_lines(to, *lines, place);
  if (const auto* bars = std::get_if<Bars>(&plot.body)) draw_bars(to, *bars, place);
  if (const auto* map = std::get_if<HeatMap>(&plot.body)) draw_heat_map(to, *map, place);
  if (const auto* image = std::get_if<Image>(&plot.body)) draw_image(to, *image, place);
}

Drawing sheet(double width, double height) {
  return {static_cast<int64_t>(std::ceil(width + 2 * kEdge)), static_cast<int64_t>(std::ceil(height + 2 * kEdge))};
}

std::string superscript(int number) {
  constexpr std::array<const char*, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) out += digits[static_cast<size_t>(digit - '0')];
  return out;
}

std::string log_tick(double power, int digit, bool plain) {
  const auto whole = static_cast<int>(power);
  if (plain) return fixed(digit * std::pow(10, whole), 3);
  return (digit > 1 ? std::to_string(digit) + "·10" : "10") + superscript(whole);
}

std::string even_tick(double value, double step) {
  if (value != 0 && (std::abs(value) >= 1e6 || step < 1e-4)) {
    const int power = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
    return fixed(value / std::pow(10, power), 2) + "·10" + superscript(power);
  }
  return fixed(value, 5);
}

}  // namespace

Colour series_colour(size_t series) { return kSeries[series % kSeries.size()]; }

double text_width(std::string_view text, double size) { return 0.55 * size * static_cast<double>(letters_of(text).size()); }

Scale::Scale(const Axis& axis, double least, double most) : log_(axis.log) {
  if (!(least <= most)) least = axis.log ? 1 : 0, most = axis.log ? 10 : 1;  // no data
  if (log_) {
    least_ = std::log10(axis.least.value_or(least)), most_ = std::log10(axis.most.value_or(most));
    const double extra = std::max(0.04 * (most_ - least_), 0.15 - (most_ - least_) / 2);
    if (!axis.least) least_ -= extra;
    if (!axis.most) most_ += extra;
    if (!(most_ > least_)) most_ = least_ + 1;
    return;
  }
  const double margin = most > least ? 0.04 * (most - least) : std::max(0.1 * std::abs(most), 1e-6);
  const bool from_zero = least >= 0 && least < 0.4 * most;  // close enough to start the axis at 0
  least_ = axis.least.value_or(from_zero ? 0 : least - margin);
  most_ = axis.most.value_or(most + margin);
  if (!(most_ > least_)) most_ = least_ + 1;
}

bool Scale::shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
double Scale::share(double value) const { return std::clamp(((log_ ? std::log10(value) : value) - least_) / (most_ - least_), 0.0, 1.0); }

std::vector<Scale::Tick> Scale::ticks(int about) const {
  std::vector<Tick> out;
  const auto place = [&](double at) { return (at - least_) / (most_ - least_); };
  if (!log_) {
    const std::vector<double> values = round_ticks(least_, most_, about);
    for (double value : values) out.push_back({place(value), even_tick(value, values.size() > 1 ? values[1] - values[0] : 1)});
    return out;
  }
  const int every = std::max(1, static_cast<int>(std::ceil((most_ - least_) / about)));  // powers of ten
  const double first = std::ceil(least_ - 1e-9);
  for (double power = std::floor(least_); power <= most_ + 1e-9; ++power)
    for (const int digit : {1, 2, 5}) {
      const double at = power + std::log10(digit);
      const bool few = most_ - least_ < 1.5;  // powers of ten alone would be too few
      if (at < least_ - 1e-9 || at > most_ + 1e-9 || (digit > 1 && !few)) continue;
      if (digit == 1 && !few && static_cast<int64_t>(power - first) % every != 0) continue;
      out.push_back({place(at), log_tick(power, digit, least_ > -2.5 && most_ < 5)});
    }
  return out;
}

void draw_legend(Drawing& to, const std::vector<Legend>& legend, Place& place) {
  constexpr double row = 17, swatch = 20, gap = 14;
  double x = place.x, y = place.y + 8;
  for (const Legend& each : legend) {
    const double width = swatch + 6 + text_width(each.name, kTickText);
    if (x > place.x && x + width > place.x + place.width) x = place.x, y += row;
    if (each.mark != Mark::points)
      to.add(
          Drawing::Line{.points = {{x, y}, {x + swatch, y}}, .colour = each.colour, .thickness = 2, .dashed = each.mark == Mark::dashed});
    if (each.mark == Mark::points || each.mark == Mark::both) to.add(Drawing::Dot{x + swatch / 2, y, 3, each.colour});
    to.add(Drawing::Text{.x = x + swatch + 6, .y = y, .text = each.name, .size = kTickText, .colour = kInk});
    x += width + gap;
  }
  const double used = y + row - place.y;
  place.y += used, place.height -= used;
}

Drawing drawing_of(const Plot& plot, bool alone) {
  Place place = place_for(plot, alone);
  Drawing out = sheet(place.width, place.height);
  place.x = place.y = kEdge;
  draw_plot(out, plot, place);
  return out;
}

Drawing drawing_of(const Frame& frame) {
  const bool alone = frame.plots.size() == 1;
  std::vector<Place> places;
  double x = 0, y = 0, row = 0, width = 1, height = 1;
  for (size_t i = 0; i < frame.plots.size(); ++i) {
    Place place = place_for(frame.plots[i], alone);
    if (i > 0 && i % kPlotsPerRow == 0) x = 0, y += row + kPlotGap, row = 0;
    place.x = kEdge + x, place.y = kEdge + y;
    x += place.width + kPlotGap;
    row = std::max(row, place.height);
    width = std::max(width, x - kPlotGap), height = std::max(height, y + row);
    places.push_back(place);
  }
  Drawing out = sheet(width, height);
  for (size_t i = 0; i < places.size(); ++i) draw_plot(out, frame.plots[i], places[i]);
  return out;
}

std::string svg_file(const Drawing& drawing) {
  return drawing.svg({.inks = figure_inks(), .font = "system-ui, sans-serif", .style = kDarkStyle, .paper = false});
}
std::string svg_in_page(const Drawing& drawing, const std::string& label) {
  return drawing.svg({.inks = figure_inks(), .font = "inherit", .label = label, .paper = false});
}

}  // namespace heed::lab
