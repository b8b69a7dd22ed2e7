#include "heed/lab/heads_page.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "heed/io/markup.h"
#include "heed/lab/coverage.h"
#include "heed/lab/heads.h"
#include "heed/lab/page.h"
#include "heed/train/head_drawing.h"
#include "heed/train/report_draw.h"

namespace heed::lab {
namespace {

std::string two_decimals(double value) {
  if (!std::isfinite(value)) return "–";
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << (std::abs(value) < 0.005 ? 0.0 : value);
  return out.str();
}

std::string heads_tile(const std::string& name, const std::string& value, const std::string& note) {
  return "<div class=\"tile\"><dt>" + name + "</dt><dd>" + value + "</dd><dd class=\"note\">" + escape_markup(note) + "</dd></div>\n";
}

// Data for the script: for every frame, layer and head the attended position (along, down), and semi-axes and angle of the ellipse d^T
// precision d = 1. Rounded, as it is only drawn.
Json heads_data(const HeadsRun& run) {
  const auto rounded = [](double value) { return std::isfinite(value) ? Json(std::round(1e3 * value) / 1e3) : Json(nullptr); };
  Json frames = Json::array();
  for (const HeadFrame& frame : run.frames) {
    Json layers = Json::array();
    for (const GaussianLayer& layer : frame.heads.layers) {
      Json heads = Json::array();
      for (const GaussianHead& head : layer.heads) {
        const auto [down, along] = head.looks_at();
        const std::optional<Ellipse> ellipse = contour(head, 1 - std::exp(-1));
        heads.push_back({rounded(along), rounded(down)});
        if (ellipse)
          for (const double part : {ellipse->longer, ellipse->shorter, ellipse->angle}) heads.back().push_back(rounded(part));
      }
      layers.push_back(heads);
    }
    Json alarms = Json::array();
    for (const HeadAlarm& alarm : alarms_of(frame.heads)) alarms.push_back({alarm.layer, alarm.head});
    Json out{{"epoch", frame.epoch}, {"step", frame.step}, {"layers", layers}, {"alarms", alarms}};
    if (const auto value = run.value("validation", frame.epoch)) out["value"] = *value, out["text"] = figure_text(run.figure, *value);
    frames.push_back(out);
  }
  return {{"reach", head_reach(run.frames)}, {"figure", readable(run.figure)}, {"frames", frames}};
}

// Escapes "</" so that the JSON cannot end the script element.
std::string in_script(const Json& json) {
  std::string out = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = out.find("</"); at != out.npos; at = out.find("</", at + 2)) out.replace(at, 2, "<\\/");
  return out;
}

std::string heads_tiles(const HeadsRun& run, size_t alarms) {
  std::string out;
  if (const auto value = run.value("validation", run.last().epoch))
    out += heads_tile(readable(run.figure), figure_text(run.figure, *value), "validation, last epoch");
  const Json figures = run.run.evaluation.is_object() ? run.run.evaluation.value("figures", Json::object()) : Json::object();
  if (figures.contains(run.figure) && figures[run.figure].is_number())
    out += heads_tile(readable(run.figure), figure_text(run.figure, figures[run.figure].get<double>()),
                      text_in(run.run.evaluation, "part") + ", best epoch");
  const std::vector<GaussianLayer>& layers = run.last().heads.layers;
  out += heads_tile("epochs", std::to_string(run.last().epoch), count_text(static_cast<double>(run.last().step)) + " steps");
  out += heads_tile("heads", std::to_string(layers.size()) + " × " + std::to_string(layers[0].heads.size()),
                    layers[0].heads[0].isotropic() ? "layers × heads, isotropic" : "layers × heads, full covariance");
  const double from = means_of(run.frames.front().heads.layers[0]).distance, to = means_of(layers[0]).distance;
  out += heads_tile("distance, first layer", two_decimals(from) + " → " + two_decimals(to), "tokens from the query, mean");
  out += heads_tile("alarms", std::to_string(alarms), alarms == 0 ? "none" : "in the last epoch");
  return "<dl class=\"tiles\">" + out + "</dl>\n";
}

std::string heads_player(const HeadsRun& run) {
  std::string panels;
  const size_t layers = run.last().heads.layers.size();
  for (size_t i = 0; i < layers; ++i)
    panels += "<figure class=\"card panel\" data-layer=\"" + std::to_string(i) + "\"><figcaption><h3>Layer " + std::to_string(i) +
              "</h3><span class=\"note\"></span></figcaption><svg role=\"img\" aria-label=\"where the heads of layer " + std::to_string(i) +
              " look\"></svg></figure>\n";
  const std::string last = std::to_string(run.frames.size() - 1);
  return "<div class=\"card player\"><div class=\"slider\"><button type=\"button\" aria-label=\"play\">▶</button><div class=\"track\"><div "
         "class=\"strip\"></div><input type=\"range\" min=\"0\" max=\"" +
         last + "\" value=\"" + last +
         "\" aria-label=\"epoch\"></div><output></output></div>"
         "<div class=\"shown\"><span class=\"key\"><i class=\"ring\"></i>start</span><span class=\"key\"><i class=\"full\"></i>now</span>"
         "<span class=\"key\"><i class=\"asking\"></i>the query</span><span class=\"choices\">"
         "<button type=\"button\" data-part=\"trail\" aria-pressed=\"true\">trails</button>"
         "<button type=\"button\" data-part=\"half\" aria-pressed=\"true\">50 % of the weight</button>"
         "<button type=\"button\" data-part=\"most\" aria-pressed=\"true\">90 %</button></span></div></div>\n<div class=\"panels\" "
         "style=\"--across:" +
         std::to_string(layers <= 4 ? layers : 3) + "\">" + panels + "</div>\n";
}

using HeadPoints = std::vector<std::pair<double, double>>;

Chart heads_curve(const HeadsRun& run) {
  Chart chart{.title = readable(run.figure), .across = "epoch", .figure = run.figure, .from_zero = run.figure == "accuracy", .left = 0.0};
  chart.title[0] = static_cast<char>(chart.title[0] - 'a' + 'A');
  for (const auto& [part, name] : {std::pair("train", "training"), std::pair("validation", "validation")}) {
    HeadPoints points;
    for (const HeadFrame& frame : run.frames)
      if (const auto value = run.value(part, frame.epoch)) points.emplace_back(static_cast<double>(frame.epoch), *value);
    chart.lines.push_back({name, name, 0, name == std::string("validation"), points});
  }
  return chart;
}

Chart heads_means(const HeadsRun& run, const std::string& title, double LayerMeans::*mean) {
  Chart chart{.title = title, .across = "epoch", .figure = "tokens", .from_zero = true, .left = 0.0};
  for (size_t i = 0; i < run.last().heads.layers.size(); ++i) {
    HeadPoints points;
    for (const HeadFrame& frame : run.frames)
      if (const double value = means_of(frame.heads.layers[i]).*mean; std::isfinite(value))
        points.emplace_back(static_cast<double>(frame.epoch), value);
    chart.lines.push_back({"layer " + std::to_string(i), "layer " + std::to_string(i), i, true, points});
  }
  return chart;
}

// The theorem needs a head at every offset of a kernel, experiment L45.
Chart heads_coverage(const HeadsRun& run) {
  const std::string K = std::to_string(widest_kernel(run.last().heads.layers[0]));
  Chart chart{.title = "Offsets of a " + K + " × " + K + " kernel with a head",
              .across = "epoch",
              .figure = "accuracy",
              .from_zero = true,
              .left = 0.0};
  for (size_t i = 0; i < run.last().heads.layers.size(); ++i) {
    HeadPoints points;
    for (const HeadFrame& frame : run.frames) {
      const GaussianLayer& layer = frame.heads.layers[i];
      points.emplace_back(static_cast<double>(frame.epoch), coverage_of(layer, widest_kernel(layer)).covered);
    }
    chart.lines.push_back({"layer " + std::to_string(i), "layer " + std::to_string(i), i, true, points});
  }
  return chart;
}

std::string heads_alarms(const std::vector<LastingAlarm>& alarms) {
  if (alarms.empty())
    return "<p class=\"said right\"><b>None</b><span>Every head is a Gaussian of a sensible width within the image, and no two heads of a "
           "layer are the same.</span></p>\n";
  std::string out;
  for (const auto& [alarm, since] : alarms)
    out += "<p class=\"said wrong\"><b>Layer " + std::to_string(alarm.layer) + ", head " + std::to_string(alarm.head) + "</b><span><i>" +
           alarm_name(alarm.kind) + "</i>, since epoch " + std::to_string(since) + ": " + escape_markup(alarm.text) + ".</span></p>\n";
  return out;
}

std::string place_html(const GaussianHead& head) {
  const auto [down, along] = head.looks_at();
  return "<td class=\"number\">" + two_decimals(down) + "</td><td class=\"number\">" + two_decimals(along) + "</td>";
}

std::string heads_table(const HeadsRun& run) {
  std::string out;
  for (size_t i = 0; i < run.last().heads.layers.size(); ++i) {
    const GaussianLayer &first = run.frames.front().heads.layers[i], &last = run.last().heads.layers[i];
    std::string rows;
    for (size_t h = 0; h < last.heads.size(); ++h) {
      const GaussianHead &start = first.heads[h], &end = last.heads[h];
      const double moved = std::hypot(end.center[0] - start.center[0], end.center[1] - start.center[1]);
      rows += "<tr><th scope=\"row\"><i class=\"dot h" + std::to_string(h % kHeadColours) + "\"></i>" + std::to_string(h) + "</th>" +
              place_html(start) + place_html(end) + "<td class=\"number\">" + two_decimals(moved) + "</td><td class=\"number\">" +
              two_decimals(means_of({"", {start}}).deviation) + "</td><td class=\"number\">" +
              two_decimals(means_of({"", {end}}).deviation) + "</td></tr>\n";
    }
    out +=
        "<div class=\"card\"><h3>Layer " + std::to_string(i) +
        "</h3><div class=\"scroll\"><table><thead><tr><th>head</th><th class=\"number\">start, down</th><th class=\"number\">right</th><th "
        "class=\"number\">end, down</th><th class=\"number\">right</th><th class=\"number\">moved</th><th class=\"number\">deviation, "
        "start</th><th class=\"number\">end</th></tr></thead><tbody>" +
        rows + "</tbody></table></div></div>\n";
  }
  return "<div class=\"pair\">" + out + "</div>\n";
}

}  // namespace

std::string heads_page(const HeadsRun& run) {
  const std::vector<LastingAlarm> alarms = lasting_alarms(run.frames);
  const std::string model = run.run.setting({"preset"}), data = run.run.setting({"data"});
  const std::string curves = "<div class=\"curves\">" + chart_html(heads_curve(run)) +
                             chart_html(heads_means(run, "Distance from the query", &LayerMeans::distance)) +
                             chart_html(heads_means(run, "Deviation of the weights", &LayerMeans::deviation)) +
                             chart_html(heads_coverage(run)) + "</div>\n";
  const std::string name = run.run.task + " " + run.run.name;
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\">\n<title>Heads of " +
         escape_markup(name) + ": heed</title>\n<style>" + kReportStyle + kLabStyle + kHeadsStyle +
         "</style>\n</head>\n<body>\n<header class=\"top\"><p class=\"kicker\">" + escape_markup(name) +
         "</p><h1>Where the heads look</h1><p class=\"about\">Each head weighs keys by a Gaussian around a learned position, relative to "
         "the query in the middle. <span>model <b>" +
         escape_markup(model) + "</b></span> <span>data <b>" + escape_markup(data) + "</b></span></p></header>\n" +
         heads_tiles(run, alarms.size()) + "<main>\n<section id=\"film\" aria-label=\"film\">" + heads_player(run) + curves +
         "</section>\n" + section_html("alarms", "Alarms", heads_alarms(alarms)) + section_html("heads", "Every head", heads_table(run)) +
         "</main>\n<footer class=\"faint\">Down, right and deviations in tokens. <a href=\"film.png\">Film</a>, <a "
         "href=\"start.svg\">start</a> and "
         "<a href=\"end.svg\">end</a> are in the same folder. Drawn by heed lab heads.</footer>\n<script type=\"application/json\" "
         "id=\"data\">" +
         in_script(heads_data(run)) + "</script>\n<script>" + kReportScript + kHeadsScript + "</script>\n</body>\n</html>\n";
}

}  // namespace heed::lab
