#include "heed/cli/inspect_page.h"

#include <algorithm>
#include <cmath>

#include "heed/cli/inspection.h"
#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed::cli {
namespace {

// One set of attention maps, one byte per weight: 255 sqrt(weight / row maximum). The square root keeps precision for small weights: the
// error of sqrt(weight) is within a 512th of the root of the row maximum, and rows still sum to 1 within a few thousandths.
Json packed(const AttentionMaps& maps) {
  std::vector<uint8_t> weights;
  std::vector<float> most;
  weights.reserve(maps.weights.size());
  const auto M = static_cast<size_t>(maps.M);
  for (size_t row = 0; row < maps.weights.size(); row += M) {
    const auto begin = maps.weights.begin() + static_cast<int64_t>(row), end = begin + static_cast<int64_t>(M);
    const float largest = *std::max_element(begin, end);
    most.push_back(largest);
    for (auto weight = begin; weight != end; ++weight)
      weights.push_back(static_cast<uint8_t>(largest > 0 ? std::lround(255 * std::sqrt(std::max(*weight, 0.0f) / largest)) : 0));
  }
  return {{"kind", maps.kind},
          {"causal", maps.causal()},
          {"rows", maps.rows},
          {"columns", maps.columns},
          {"layers", maps.layers},
          {"heads", maps.heads},
          {"weights", base64(std::as_bytes(std::span(weights)))},
          {"most", base64(std::as_bytes(std::span(most)))}};
}

Json page_data(const Inspection& inspection) {
  Json out{{"sets", Json::array()}, {"heat", Json::array()}, {"query", -1}};
  for (const AttentionMaps& maps : inspection.maps) out["sets"].push_back(packed(maps));
  if (!inspection.rollout.empty()) {
    AttentionMaps all = inspection.maps[0];
    all.kind = "rollout";
    all.layers = all.heads = {0};
    all.weights = inspection.rollout;
    out["sets"].push_back(packed(all));
  }
  for (const Colour& stop : kHeat) out["heat"].push_back({stop.red, stop.green, stop.blue});
  if (inspection.kind != InputKind::image) return out;
  const std::string png = png_bytes(inspection.image);
  out["query"] = default_query(inspection);
  out["image"] = "data:image/png;base64," + base64(std::as_bytes(std::span(png)));
  out["grid"] = {{"rows", inspection.rows},
                 {"columns", inspection.columns},
                 {"first", inspection.first},
                 {"width", inspection.image.width},
                 {"height", inspection.image.height}};
  return out;
}

// JSON for a script element: < is escaped, so that it cannot contain a tag.
std::string in_script(const Json& json) {
  std::string out;
  for (char letter : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (letter == '<')
      out += "\\u003c";
    else
      out += letter;
  }
  return out;
}

std::string panel(const std::string& title, const std::string& id, const std::string& below = "") {
  return "<section class=\"card panel\" id=\"" + id + "-panel\"><h2>" + title + "</h2><div class=\"fit\"><canvas id=\"" + id +
         "\" tabindex=\"0\" role=\"img\" aria-label=\"" + title + "\"></canvas></div>" + below + "</section>\n";
}

// The colour scale of weights from 0 to the largest, which the script fills in.
std::string scale_of(const std::string& id) { return heat_legend_html("0", "<span id=\"" + id + "-most\"></span>"); }

std::string score_text(const Prediction& prediction, const Label& label) {
  return prediction.probabilities ? figure_text("recall", static_cast<double>(label.score))
                                  : figure_text("", static_cast<double>(label.score));
}

std::string prediction_html(const Prediction& prediction) {
  std::string rows;
  for (const Label& label : prediction.labels) {
    const double share = prediction.probabilities ? std::clamp(static_cast<double>(label.score), 0.0, 1.0) : 0;
    rows += "<tr><th scope=\"row\">" + escape_markup(label.name) + "</th><td class=\"number\"><span class=\"value\">" +
            score_text(prediction, label) + "</span><span class=\"bar\"><i style=\"width:" + fixed(100 * share, 1) +
            "%\"></i></span></td></tr>";
  }
  return "<section class=\"card\"><h3>Prediction: " + escape_markup(prediction.about) + "</h3><table class=\"bars\"><tbody>" + rows +
         "</tbody></table></section>\n";
}

// One label per token, as a list.
std::string labelled_tokens_html(const Inspection& inspection) {
  std::string out;
  for (const Prediction& prediction : inspection.predictions)
    out += "<span><b>" + escape_markup(prediction.about) + "</b> " + escape_markup(prediction.labels[0].name) + " <span class=\"faint\">" +
           score_text(prediction, prediction.labels[0]) + "</span></span>";
  return "<section class=\"card\"><h3>Prediction: label of every token</h3><p class=\"tokens list\">" + out + "</p></section>\n";
}

std::string predictions_html(const Inspection& inspection) {
  std::string out;
  if (!inspection.translation.empty())
    out = "<section class=\"card translation\"><h3>" +
          std::string(inspection.own_translation ? "Translation by the model" : "Provided translation") + "</h3><dl><dt>source</dt><dd>" +
          escape_markup(inspection.input) + "</dd><dt>translation</dt><dd>" + escape_markup(inspection.translation) +
          "</dd></dl></section>\n";
  if (inspection.task == ModelTask::token_classification && !inspection.predictions.empty())
    out += labelled_tokens_html(inspection);
  else
    for (const Prediction& prediction : inspection.predictions) out += prediction_html(prediction);
  return out.empty() ? "" : "<div class=\"answers\">\n" + out + "</div>\n";
}

std::string controls_html(bool image, const std::string& reset) {
  const auto choice = [](const char* name, const char* id) {
    return std::string("<label>") + name + " <select id=\"" + id + "\"></select></label>\n";
  };
  std::string out =
      "<div class=\"card controls\" role=\"group\" aria-label=\"What is shown\">\n" + choice("maps", "set") + choice("layer", "layer") +
      choice("head", "head") +
      "<label title=\"Rows with few keys have larger weights and outshine the others on a common scale\"><input type=\"checkbox\" "
      "id=\"by-row\"> each row by its own largest weight</label>\n";
  if (image)
    out += "<label>colour over the image <input type=\"range\" id=\"over\" min=\"0\" max=\"100\" value=\"" + fixed(100 * kOverImage, 0) +
           "\"></label>\n";
  return out + "<button type=\"button\" id=\"all\">" + reset + "</button>\n</div>\n";
}

std::string about_html(const Inspection& inspection, bool image) {
  const AttentionMaps& maps = inspection.maps[0];
  std::string out = "<span>" + escape_markup(inspection.architecture) + "</span><span>input <b class=\"input\">" +
                    escape_markup(inspection.input) + "</b></span>";
  if (image)
    out += "<span>resized to <b>" + std::to_string(inspection.image.width) + " × " + std::to_string(inspection.image.height) +
           "</b> pixels, <b>" + std::to_string(inspection.columns) + " × " + std::to_string(inspection.rows) + "</b> patches</span>";
  else
    out += "<span><b>" + std::to_string(maps.columns.size()) + "</b> tokens</span>";
  return out + "<span><b>" + std::to_string(maps.all_layers) + "</b> layers of <b>" + std::to_string(maps.all_heads) + "</b> heads</span>";
}

}  // namespace

std::string html_page(const Inspection& inspection) {
  const bool image = inspection.kind == InputKind::image, translation = inspection.kind == InputKind::translation;
  const std::string hint = image ? "Point at a patch to see what it attends to; click to pin it."
                           : translation
                               ? "Point at a token of the translation to see which source tokens it attends to; click to pin it."
                               : "Point at a token on the left, or at a row of the matrix, to see what it attends to; click to pin it.";
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + escape_markup(inspection.model) +
         ": attention: heed</title>\n<style>" + kReportStyle + kInspectStyle + "</style>\n</head>\n<body>\n";
  out += "<header><p class=\"kicker\">attention</p><h1>" + escape_markup(inspection.model) + "</h1><p class=\"about\">" +
         about_html(inspection, image) + "</p></header>\n<main>\n" + predictions_html(inspection);
  out += controls_html(image, image && inspection.first > 0 ? "class token" : "all queries");
  out += "<p class=\"faint\">" + hint + " Arrow keys work too.</p>\n<div class=\"panels\">\n";
  const std::string matrix = panel("Matrix: queries down, keys across", "matrix", scale_of("matrix"));
  out += "<div>\n" +
         (image ? panel("Over the image", "image", scale_of("image"))
                : panel("Lines", "lines", "<p class=\"faint\">Stronger lines are larger weights; weights below 0.004 are left out.</p>")) +
         matrix + "</div>\n<div>\n";
  out +=
      "<section class=\"card panel\"><h2>Largest weights of <span id=\"query\" aria-live=\"polite\"></span></h2><table "
      "class=\"bars\"><tbody "
      "id=\"top\"></tbody></table></section>\n";
  out += panel("Every layer (down) and head (across)", "overview", "<p class=\"faint\">Click one to show it.</p>") + "</div>\n";
  out += "</div>\n</main>\n<noscript>This page needs JavaScript.</noscript>\n";
  out += "<footer class=\"faint\">drawn by heed inspect</footer>\n<script type=\"application/json\" id=\"data\">" +
         in_script(page_data(inspection)) + "</script>\n<script>" + kInspectDraw + kInspectControls + "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace heed::cli
