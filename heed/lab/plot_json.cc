// The data of figures as JSON, for pages that draw them.
#include <cmath>

#include "heed/io/json.h"
#include "heed/io/markup.h"
#include "heed/lab/plot_json.h"

namespace heed::lab {
namespace {

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json optional_number(const std::optional<double>& value) { return value ? finite(*value) : Json(); }

Json list_json(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double each : values) out.push_back(finite(each));
  return out;
}

Json axis_json(const Axis& axis) {
  return {{"name", axis.name}, {"log", axis.log}, {"least", optional_number(axis.least)}, {"most", optional_number(axis.most)}};
}

std::string data_url(const Image& image) {
  const std::string png = png_bytes(image);
  return "data:image/png;base64," + base64(std::as_bytes(std::span(png)));
}

const char* mark_name(Mark mark) {
  return mark == Mark::line ? "line" : mark == Mark::dashed ? "dashed" : mark == Mark::points ? "points" : "both";
}

struct PlotBody {
  Json& out;

  void operator()(const Lines& lines) const {
    out["kind"] = "lines";
    out["x"] = axis_json(lines.across);
    out["y"] = axis_json(lines.up);
    out["series"] = Json::array();
    for (const Series& each : lines.series)
      out["series"].push_back({{"name", each.name},
                               {"x", list_json(each.x)},
                               {"y", list_json(each.y)},
                               {"mark", mark_name(each.mark)},
                               {"low", list_json(each.low)},
                               {"high", list_json(each.high)}});
  }
  void operator()(const HeatMap& map) const {
    out["kind"] = "heat_map";
    out["rows"] = map.rows;
    out["columns"] = map.columns;
    out["values"] = list_json(map.values);
    out["down"] = map.down;
    out["across"] = map.across;
    out["least"] = optional_number(map.least);
    out["most"] = optional_number(map.most);
    out["diverging"] = map.diverging;
    if (map.under.width > 0) out["under"] = data_url(map.under);
  }
  void operator()(const Bars& bars) const {
    out["kind"] = "bars";
    out["y"] = axis_json(bars.up);
    out["groups"] = bars.groups;
    out["sets"] = Json::array();
    for (const BarSet& each : bars.sets)
      out["sets"].push_back(
          {{"name", each.name}, {"values", list_json(each.values)}, {"low", list_json(each.low)}, {"high", list_json(each.high)}});
  }
  void operator()(const Image& image) const {
    out["kind"] = "image";
    out["image"] = data_url(image);
  }
};

}  // namespace

Json plots_json(const Frame& frame) {
  Json out = Json::array();
  for (const Plot& plot : frame.plots) {
    Json one{{"title", plot.title}};
    std::visit(PlotBody{one}, plot.body);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace heed::lab
