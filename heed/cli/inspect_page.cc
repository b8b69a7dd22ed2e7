#include "heed/cli/inspect_page.h"

#include <algorithm>
#include <cmath>

#include "heed/cli/inspect_look.h"
#include "heed/io/markup.h"

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
          {"rows", maps.rows},
          {"columns", maps.columns},
          {"layers", maps.layers},
          {"heads", maps.heads},
          {"weights", base64(std::as_bytes(std::span(weights)))},
          {"most", base64(std::as_bytes(std::span(most)))}};
}

Json page_data(const Look& look) {
  Json out{{"sets", Json::array()}, {"heat", Json::array()}, {"over", kOverPicture}, {"query", -1}};
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
  const double scale = std::max(1.0, std::round(448.0 / static_cast<double>(look.picture.width)));
  out["query"] = default_query(look);
  out["picture"] = "data:image/png;base64," + base64(std::as_bytes(std::span(png)));
  out["grid"] = {{"rows", look.rows},
                 {"columns", look.columns},
                 {"first", look.first},
                 {"width", scale * static_cast<double>(look.picture.width)},
                 {"height", scale * static_cast<double>(look.picture.height)}};
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

std::string panel(const std::string& title, const std::string& id) {
  return "<section class=\"panel\" id=\"" + id + "-panel\"><h2>" + title + "</h2><canvas id=\"" + id + "\"></canvas></section>\n";
}

}  // namespace

std::string html_page(const Look& look) {
  const bool picture = look.kind == InputKind::picture, translation = look.kind == InputKind::translation;
  const std::string hint = picture ? "Point at a patch to see where it looks; click to keep it."
                           : translation
                               ? "Point at a word of the translation to see which words of the source it comes from; click to keep it."
                               : "Point at a word on the left, or at a row of the matrix, to see where it looks; click to keep it.";
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + in_markup(look.architecture) +
         ": attention</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n";
  out += "<h1>" + in_markup(look.architecture) + "</h1>\n<p>" + in_markup(look.input) + "</p>\n<p class=\"faint\">" + hint + "</p>\n";
  out += "<div class=\"bar\">\n<label>maps <select id=\"set\"></select></label>\n<label>layer <select id=\"layer\"></select></label>\n";
  out +=
      "<label>head <select id=\"head\"></select></label>\n<label><input type=\"checkbox\" id=\"by-row\"> each row by its own "
      "largest</label>\n";
  out += std::string("<button id=\"all\">") + (picture && look.first > 0 ? "class token" : "all") + "</button>\n</div>\n";
  out += "<div class=\"panels\">\n";
  out += picture ? panel("over the picture", "picture") : panel("lines", "lines");
  out += "<section class=\"panel\"><h2>seen most by <span id=\"query\"></span></h2><table><tbody id=\"top\"></tbody></table></section>\n";
  out += panel("matrix: queries down, keys across", "matrix");
  out += panel("every layer (down) and head (across)", "overview");
  out += "</div>\n<noscript>This page draws with JavaScript, which is switched off.</noscript>\n";
  out += "<script type=\"application/json\" id=\"data\">" + in_script(page_data(look)) + "</script>\n<script>" + kPageScript +
         "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace heed::cli
