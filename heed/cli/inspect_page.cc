#include "heed/cli/inspect_page.h"

#include <algorithm>
#include <cmath>

#include "heed/cli/inspect_look.h"
#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed::cli {
namespace {

// Queries and keys with their weights, one byte each. Roots, as most weights are small: what is left of the smallest is within a
// 512th of the root of the largest in its row, and rows still sum to 1 within a few thousandths.
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

Json page_data(const Look& look) {
  Json out{{"sets", Json::array()}, {"heat", Json::array()}, {"query", -1}};
  for (const AttentionMaps& maps : look.maps) out["sets"].push_back(packed(maps));
  if (!look.rollout.empty()) {
    AttentionMaps all = look.maps[0];
    all.kind = "rollout";
    all.layers = all.heads = {0};
    all.weights = look.rollout;
    out["sets"].push_back(packed(all));
  }
  for (const Colour& stop : kHeat) out["heat"].push_back({stop.red, stop.green, stop.blue});
  if (look.kind != InputKind::picture) return out;
  const std::string png = png_bytes(look.picture);
  out["query"] = default_query(look);
  out["picture"] = "data:image/png;base64," + base64(std::as_bytes(std::span(png)));
  out["grid"] = {{"rows", look.rows},
                 {"columns", look.columns},
                 {"first", look.first},
                 {"width", look.picture.width},
                 {"height", look.picture.height}};
  return out;
}

// JSON inside a script element: no tag can begin or end in it.
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

// The colours of weights, from 0 to the largest, which the script names.
std::string scale_of(const std::string& id) { return heat_legend_html("0", "<span id=\"" + id + "-most\"></span>"); }

std::string score_text(const LookAnswer& answer, const Label& label) {
  return answer.probabilities ? figure_text("recall", static_cast<double>(label.score)) : figure_text("", static_cast<double>(label.score));
}

std::string answer_html(const LookAnswer& answer) {
  std::string rows;
  for (const Label& label : answer.labels) {
    const double share = answer.probabilities ? std::clamp(static_cast<double>(label.score), 0.0, 1.0) : 0;
    rows += "<tr><th scope=\"row\">" + in_markup(label.name) + "</th><td class=\"number\"><span class=\"value\">" +
            score_text(answer, label) + "</span><span class=\"bar\"><i style=\"width:" + fixed(100 * share, 1) +
            "%\"></i></span></td></tr>";
  }
  return "<section class=\"card\"><h3>Prediction: " + in_markup(answer.about) + "</h3><table class=\"bars\"><tbody>" + rows +
         "</tbody></table></section>\n";
}

// One label for every token: a list of them.
std::string labelled_tokens_html(const Look& look) {
  std::string out;
  for (const LookAnswer& answer : look.answers)
    out += "<span><b>" + in_markup(answer.about) + "</b> " + in_markup(answer.labels[0].name) + " <span class=\"faint\">" +
           score_text(answer, answer.labels[0]) + "</span></span>";
  return "<section class=\"card\"><h3>Prediction: label of every token</h3><p class=\"tokens list\">" + out + "</p></section>\n";
}

std::string answers_html(const Look& look) {
  std::string out;
  if (!look.translation.empty())
    out = "<section class=\"card translation\"><h3>" +
          std::string(look.own_translation ? "Translation by the model" : "Given translation") + "</h3><dl><dt>source</dt><dd>" +
          in_markup(look.input) + "</dd><dt>translation</dt><dd>" + in_markup(look.translation) + "</dd></dl></section>\n";
  if (look.architecture.ends_with("ForTokenClassification") && !look.answers.empty())
    out += labelled_tokens_html(look);
  else
    for (const LookAnswer& answer : look.answers) out += answer_html(answer);
  return out.empty() ? "" : "<div class=\"answers\">\n" + out + "</div>\n";
}

std::string controls_html(bool picture, const std::string& reset) {
  const auto choice = [](const char* name, const char* id) {
    return std::string("<label>") + name + " <select id=\"" + id + "\"></select></label>\n";
  };
  std::string out = "<div class=\"card controls\" role=\"group\" aria-label=\"What is shown\">\n" + choice("maps", "set") +
                    choice("layer", "layer") + choice("head", "head") +
                    "<label title=\"Rows of few keys have larger weights; on one scale they outshine the others\"><input type=\"checkbox\" "
                    "id=\"by-row\"> each row by its own largest weight</label>\n";
  if (picture)
    out += "<label>colour over the image <input type=\"range\" id=\"over\" min=\"0\" max=\"100\" value=\"" + fixed(100 * kOverPicture, 0) +
           "\"></label>\n";
  return out + "<button type=\"button\" id=\"all\">" + reset + "</button>\n</div>\n";
}

std::string about_html(const Look& look, bool picture) {
  const AttentionMaps& maps = look.maps[0];
  std::string out =
      "<span>" + in_markup(look.architecture) + "</span><span>input <b class=\"input\">" + in_markup(look.input) + "</b></span>";
  if (picture)
    out += "<span>seen as <b>" + std::to_string(look.picture.width) + " × " + std::to_string(look.picture.height) + "</b> pixels, <b>" +
           std::to_string(look.columns) + " × " + std::to_string(look.rows) + "</b> patches</span>";
  else
    out += "<span><b>" + std::to_string(maps.columns.size()) + "</b> tokens</span>";
  return out + "<span><b>" + std::to_string(maps.all_layers) + "</b> layers of <b>" + std::to_string(maps.all_heads) + "</b> heads</span>";
}

}  // namespace

std::string html_page(const Look& look) {
  const bool picture = look.kind == InputKind::picture, translation = look.kind == InputKind::translation;
  const std::string hint = picture ? "Point at a patch to see where it looks; click to keep it."
                           : translation
                               ? "Point at a token of the translation to see which tokens of the source it comes from; click to keep it."
                               : "Point at a token on the left, or at a row of the matrix, to see where it looks; click to keep it.";
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + in_markup(look.model) +
         ": attention: heed</title>\n<style>" + kReportStyle + kInspectStyle + "</style>\n</head>\n<body>\n";
  out += "<header><p class=\"kicker\">attention</p><h1>" + in_markup(look.model) + "</h1><p class=\"about\">" + about_html(look, picture) +
         "</p></header>\n<main>\n" + answers_html(look);
  out += controls_html(picture, picture && look.first > 0 ? "class token" : "all queries");
  out += "<p class=\"faint\">" + hint + " Arrow keys move too.</p>\n<div class=\"panels\">\n";
  const std::string matrix = panel("Matrix: queries down, keys across", "matrix", scale_of("matrix"));
  out += "<div>\n" +
         (picture ? panel("Over the image", "picture", scale_of("picture"))
                  : panel("Lines", "lines",
                          "<p class=\"faint\">The stronger a line, the larger its weight; those below 0.004 are left out.</p>")) +
         matrix + "</div>\n<div>\n";
  out +=
      "<section class=\"card panel\"><h2>Seen most by <span id=\"query\" aria-live=\"polite\"></span></h2><table class=\"bars\"><tbody "
      "id=\"top\"></tbody></table></section>\n";
  out += panel("Every layer (down) and head (across)", "overview", "<p class=\"faint\">Click one to look at it.</p>") + "</div>\n";
  out += "</div>\n</main>\n<noscript>This page draws with JavaScript, which is switched off.</noscript>\n";
  out += "<footer class=\"faint\">drawn by heed inspect</footer>\n<script type=\"application/json\" id=\"data\">" +
         in_script(page_data(look)) + "</script>\n<script>" + kInspectDraw + kInspectControls + "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace heed::cli
