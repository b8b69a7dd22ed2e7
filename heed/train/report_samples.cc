// Report section of samples: images with an attention overlay, tokens coloured by attention, translations with their alignment.
#include <algorithm>
#include <cmath>

#include "heed/io/drawing.h"
#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed {
namespace {

constexpr size_t kMaxPerKind = 24;
constexpr int64_t kHeatSide = 48;  // pixels of the shorter side of the heat map; the browser interpolates further
constexpr int64_t kMaxHeatPixels = 1 << 16;

std::string png_source(const Image& image) {
  const std::string png = png_bytes(image);
  return "data:image/png;base64," + base64(std::as_bytes(std::span(png)));
}

// Attention as a heat map, interpolated between patch centres and normalized to the maximum.
Image heat_of(const Sample& sample) {
  const int64_t rows = sample.map_rows, columns = sample.map_columns;
  int64_t times = std::max<int64_t>(1, kHeatSide / std::min(rows, columns));
  while (times > 1 && rows * columns * times * times > kMaxHeatPixels) --times;
  const int64_t height = rows * times, width = columns * times;
  const double most = std::max<double>(*std::max_element(sample.map.begin(), sample.map.end()), 1e-12);
  const auto at = [&](int64_t row, int64_t column) {
    row = std::clamp<int64_t>(row, 0, rows - 1);
    column = std::clamp<int64_t>(column, 0, columns - 1);
    return static_cast<double>(sample.map[static_cast<size_t>(row * columns + column)]);
  };
  Image out{.width = width, .height = height};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const double down = (static_cast<double>(y) + 0.5) * static_cast<double>(rows) / static_cast<double>(height) - 0.5;
      const double across = (static_cast<double>(x) + 0.5) * static_cast<double>(columns) / static_cast<double>(width) - 0.5;
      const auto row = static_cast<int64_t>(std::floor(down)), column = static_cast<int64_t>(std::floor(across));
      const double v = down - static_cast<double>(row), u = across - static_cast<double>(column);
      const double weight = (1 - v) * ((1 - u) * at(row, column) + u * at(row, column + 1)) +
                            v * ((1 - u) * at(row + 1, column) + u * at(row + 1, column + 1));
      const Colour colour = heat(weight / most);
      out.pixels.insert(out.pixels.end(), {colour.red, colour.green, colour.blue});
    }
  return out;
}

std::string caption_of(const Sample& sample) {
  std::string out =
      "<figcaption><span class=\"verdict\">" + std::string(sample.right ? "✓" : "✗") + "</span> " + escape_markup(sample.guess);
  if (sample.score > 0) out += " <span class=\"faint\">" + figure_text("recall", sample.score) + "</span>";
  if (!sample.right) out += "<br><span class=\"faint\">truth: " + escape_markup(sample.truth) + "</span>";
  return out + "</figcaption>";
}

// Escapes text, with <br> for line breaks.
std::string in_markup_lines(const std::string& text) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += (begin > 0 ? "<br>" : "") + escape_markup(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string figure_open(const Sample& sample, const char* kind) {
  return std::string("<figure class=\"sample ") + kind + (sample.right ? " right" : " wrong") + "\">";
}

std::string image_html(const Sample& sample) {
  const std::string alt = escape_markup(sample.guess + ", truth " + sample.truth), source = png_source(sample.image);
  const std::string sharp = sample.image.width < 100 ? " class=\"sharp\"" : "";
  const std::string plain = "<img" + sharp + " src=\"" + source + "\" alt=\"" + alt + "\">";
  std::string out = figure_open(sample, "image") + "<div class=\"two\">" + plain;
  if (!sample.map.empty())
    out += "<span class=\"laid\"><img" + sharp + " src=\"" + source + "\" alt=\"\"><img class=\"heat\" src=\"" +
           png_source(heat_of(sample)) + "\" alt=\"attention on " + alt + "\"></span>";
  return out + "</div>" + caption_of(sample) + "</figure>\n";
}

// Tokens with a background opacity proportional to their weight.
std::string tokens_html(const Sample& sample) {
  std::string out;
  const float most = sample.map.empty() ? 1 : std::max(*std::max_element(sample.map.begin(), sample.map.end()), 1e-12f);
  for (size_t i = 0; i < sample.columns.size(); ++i) {
    const double weight = i < sample.map.size() ? static_cast<double>(sample.map[i]) : 0;
    out += "<span class=\"token\" style=\"--w:" + fixed(std::clamp(weight / static_cast<double>(most), 0.0, 1.0), 3) + "\" title=\"" +
           figure_text("recall", weight) + "\">" + escape_markup(sample.columns[i]) + "</span> ";
  }
  return figure_open(sample, "text") + "<p class=\"tokens\">" + out + "</p>" + caption_of(sample) + "</figure>\n";
}

std::string alignment_svg(const Sample& sample) {
  constexpr double cell = 20, size = 12, letter = 7.4;
  const auto widest = [](const std::vector<std::string>& labels) {
    size_t most = 0;
    for (const std::string& label : labels) most = std::max(most, letters_of(label).size());
    return static_cast<double>(std::min<size_t>(most, 24)) * letter + 10;
  };
  const double left = widest(sample.rows), top = widest(sample.columns), right = left + cell * static_cast<double>(sample.columns.size()),
               bottom = top + cell * static_cast<double>(sample.rows.size());
  std::string cells, labels;
  for (size_t i = 0; i < sample.rows.size(); ++i) {
    const double y = top + cell * static_cast<double>(i);
    labels += "<text x=\"" + fixed(left - 6, 1) + "\" y=\"" + fixed(y + cell / 2, 1) + "\" text-anchor=\"end\">" +
              escape_markup(sample.rows[i]) + "</text>";
    for (size_t j = 0; j < sample.columns.size(); ++j) {
      const double weight = static_cast<double>(sample.map[i * sample.columns.size() + j]);
      if (weight < 0.005) continue;
      cells += "<rect class=\"heat\" x=\"" + fixed(left + cell * static_cast<double>(j), 1) + "\" y=\"" + fixed(y, 1) + "\" width=\"" +
               fixed(cell - 1, 1) + "\" height=\"" + fixed(cell - 1, 1) + "\" fill-opacity=\"" + fixed(std::clamp(weight, 0.0, 1.0), 3) +
               "\"><title>" + escape_markup(sample.rows[i]) + " from " + escape_markup(sample.columns[j]) + ": " +
               figure_text("recall", weight) + "</title></rect>";
    }
  }
  for (size_t j = 0; j < sample.columns.size(); ++j) {
    const std::string x = fixed(left + cell * (static_cast<double>(j) + 0.5), 1), y = fixed(top - 6, 1);
    labels += "<text x=\"" + x + "\" y=\"" + y + "\" transform=\"rotate(-90 " + x + " " + y + ")\">" + escape_markup(sample.columns[j]) +
              "</text>";
  }
  return "<div class=\"scroll\"><svg class=\"matrix\" width=\"" + fixed(right, 0) + "\" height=\"" + fixed(bottom, 0) +
         "\" viewBox=\"0 0 " + fixed(right, 0) + " " + fixed(bottom, 0) + "\" font-size=\"" + fixed(size, 0) +
         "\" role=\"img\" aria-label=\"Alignment: output tokens in rows, input tokens in columns\"><rect class=\"ground\" x=\"" +
         fixed(left, 1) + "\" y=\"" + fixed(top, 1) + "\" width=\"" + fixed(right - left - 1, 1) + "\" height=\"" +
         fixed(bottom - top - 1, 1) + "\"/>" + cells + labels + "</svg></div>";
}

// Source, output and reference as text, then the alignment.
std::string texts_html(const Sample& sample, bool translation) {
  std::string source = sample.source;
  if (source.empty())  // older samples.json files have only the tokens
    for (const std::string& token : sample.columns) source += (source.empty() ? "" : " ") + token;
  const auto row = [](const char* name, const std::string& text) {
    return std::string("<dt>") + name + "</dt><dd>" + in_markup_lines(text) + "</dd>";
  };
  const std::string texts = translation ? row("source", source) + row("translation", sample.guess) + row("reference", sample.truth)
                                        : row("prompt", source) + row("continuation", sample.guess) + row("original", sample.truth);
  return figure_open(sample, "translation") + "<dl>" + texts + "</dl>" + (sample.map.empty() ? "" : alignment_svg(sample)) + "</figure>\n";
}

enum class SampleKind { image, tokens, translation, continuation };

SampleKind kind_of(const Sample& sample) {
  if (sample.image.width > 0) return SampleKind::image;
  if (sample.source.empty() && sample.rows.size() <= 1) return SampleKind::tokens;
  return sample.rows.empty() || sample.columns.size() == 1 ? SampleKind::continuation : SampleKind::translation;
}

std::string sample_html(const Sample& sample) {
  const SampleKind kind = kind_of(sample);
  if (kind == SampleKind::image) return image_html(sample);
  if (kind != SampleKind::tokens) return texts_html(sample, kind == SampleKind::translation);
  if (!sample.columns.empty()) return tokens_html(sample);
  return figure_open(sample, "text") + caption_of(sample) + "</figure>\n";
}

}  // namespace

std::string samples_html(const RunRecord& run) {
  if (run.samples.empty()) return missing_html("samples.json", "the samples");
  const SampleKind kind = kind_of(run.samples[0]);
  const bool images = kind == SampleKind::image;
  const bool maps = std::any_of(run.samples.begin(), run.samples.end(), [](const Sample& sample) { return !sample.map.empty(); });
  std::string out, controls;
  if (images && maps)
    controls = "<label>attention overlay <input type=\"range\" class=\"over\" min=\"0\" max=\"100\" value=\"60\"></label>" +
               heat_legend_html("least", "most attention in an image");
  else if (maps)
    controls = "<span class=\"scale\">" + std::string(kind == SampleKind::tokens ? "no attention" : "weight 0") +
               " <i class=\"tint\"></i> " + (kind == SampleKind::tokens ? "most in a text" : "1") + "</span>";
  if (!controls.empty()) out = "<p class=\"controls\">" + controls + "</p>\n";
  for (const bool right : {false, true}) {
    std::string figures;
    size_t shown = 0, all = 0;
    for (const Sample& sample : run.samples) {
      if (sample.right != right) continue;
      if (++all <= kMaxPerKind) figures += sample_html(sample), ++shown;
    }
    if (all == 0) continue;
    const char* title = kind == SampleKind::translation    ? (right ? "Same as the reference" : "Different from the reference")
                        : kind == SampleKind::continuation ? (right ? "Same as the original" : "Continuations by the model")
                                                           : (right ? "Right" : "Wrong");
    out += std::string("<h3>") + title + " <span class=\"faint\">" + std::to_string(shown) +
           (shown < all ? " of " + std::to_string(all) : "") + "</span></h3>\n<div class=\"samples " + (images ? "images" : "texts") +
           "\">" + figures + "</div>\n";
  }
  return out;
}

}  // namespace heed
