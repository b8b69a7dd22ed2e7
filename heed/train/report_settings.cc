// Tables of a report: what every layer costs, and the settings of a run.
#include <algorithm>
#include <array>

#include "heed/io/markup.h"
#include "heed/train/report_draw.h"
#include "heed/train/run_summary.h"

namespace heed {
namespace {

std::string cost_cell(double value, double all, const char* unit) {
  const double share = all > 0 ? value / all : 0;
  return "<td class=\"number\"><span class=\"value\">" + (value > 0 ? count_text(value) + unit : std::string("–")) +
         "</span><span class=\"bar\"><i style=\"width:" + fixed(100 * std::clamp(share, 0.0, 1.0), 1) + "%\"></i></span></td>";
}

// A dotted name may go on in the next line behind each of its parts.
std::string breakable(const std::string& name) {
  std::string out;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size() - 1) + 1;
    out += in_markup(name.substr(begin, end - begin)) + (end < name.size() ? "<wbr>" : "");
    begin = end;
  }
  return out;
}

}  // namespace

std::string costs_html(const RunRecord& run) {
  const Json& layers = list_in(run.costs, "layers");
  if (layers.empty()) return missing_html("costs.json", "the costs of layers");
  constexpr std::array<std::pair<const char*, const char*>, 3> kinds{{{"parameters", ""}, {"multiply_adds", ""}, {"bytes", "B"}}};
  std::array<double, 3> all{}, most{};
  for (const Json& layer : layers)
    for (size_t k = 0; k < kinds.size(); ++k) {
      all[k] += number_in(layer, kinds[k].first);
      most[k] = std::max(most[k], number_in(layer, kinds[k].first));
    }
  std::string rows, total = "<tr class=\"total\"><th scope=\"row\">all " + std::to_string(layers.size()) + " parts</th>", head;
  for (size_t k = 0; k < kinds.size(); ++k) {
    head += "<th scope=\"col\" class=\"number\">" + readable(kinds[k].first) + "</th>";
    total += "<td class=\"number\">" + count_text(all[k]) + (all[k] < 1000 && *kinds[k].second != 0 ? " " : "") + kinds[k].second + "</td>";
  }
  for (const Json& layer : layers) {
    rows += "<tr><th scope=\"row\">" + breakable(text_in(layer, "name")) + "</th>";
    for (size_t k = 0; k < kinds.size(); ++k)
      rows +=
          cost_cell(number_in(layer, kinds[k].first), most[k], number_in(layer, kinds[k].first) < 1000 && k == 2 ? " B" : kinds[k].second);
    rows += "</tr>";
  }
  return "<div class=\"card tall\"><table class=\"bars costs\"><thead><tr><th scope=\"col\">part</th>" + head + "</tr></thead><tbody>" +
         total + "</tr>" + rows + "</tbody></table></div>\n";
}

std::string settings_html(const RunRecord& run) {
  if (run.settings.empty()) return missing_html("config.toml", "its settings");
  std::string out, table;
  for (const auto& [key, value] : run.settings) {
    const size_t dot = key.rfind('.');
    const std::string above = dot == key.npos ? "" : key.substr(0, dot);
    if (out.empty() || above != table) {
      if (!out.empty()) out += "</dl>";
      out += above.empty() ? "<dl class=\"card\">" : "<dl class=\"card\"><dt class=\"group\">" + in_markup(above) + "</dt>";
      table = above;
    }
    out += "<div><dt>" + in_markup(dot == key.npos ? key : key.substr(dot + 1)) + "</dt><dd>" + in_markup(value) + "</dd></div>";
  }
  return "<div class=\"settings\">" + out + "</dl></div>\n";
}

std::string differences_html(std::span<const RunRecord> runs) {
  std::string rows;
  for (const auto& [key, values] : compared_settings(runs)) {
    rows += "<tr><th scope=\"row\">" + in_markup(key) + "</th>";
    for (const std::string& value : values) rows += "<td>" + (value.empty() ? "–" : in_markup(value)) + "</td>";
    rows += "</tr>";
  }
  if (rows.empty()) return "<p class=\"faint\">The settings of these runs are the same.</p>\n";
  std::string head;
  for (size_t i = 0; i < runs.size(); ++i)
    head += "<th scope=\"col\"><i class=\"dot c" + std::to_string(i % 8) + "\"></i>" + in_markup(runs[i].name) + "</th>";
  return "<div class=\"card scroll\"><table><thead><tr><th scope=\"col\">setting</th>" + head + "</tr></thead><tbody>" + rows +
         "</tbody></table></div>\n";
}

}  // namespace heed
