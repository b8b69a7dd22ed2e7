// Attention maps as a static drawing: a row per layer, with the mean of the heads and every head.
#include <algorithm>
#include <cmath>

#include "heed/cli/inspection.h"
#include "heed/io/heat_map.h"
#include "heed/io/markup.h"

namespace heed::cli {
namespace {

constexpr int64_t kMaxPixels = 100'000'000;
constexpr double kSize = 10, kLetter = kSize * kLetterStep, kGap = 12, kHead = 20;  // font size, character width, panel gap, title height
constexpr Colour kLine{159, 36, 121}, kFaint{120, 120, 120};

Drawing blank(double width, double height) {
  const int64_t w = std::lround(std::ceil(width)), h = std::lround(std::ceil(height));
  check<UsageError>(w * h <= kMaxPixels, "inspect: found an image of ", w, " x ", h, " pixels, expected at most ", kMaxPixels,
                    "; choose fewer with --layers and --heads");
  return {w, h};
}

std::string shortened(const std::string& label, size_t longest) {
  const std::vector<Letter> letters = letters_of(label);
  std::string out;
  for (size_t i = 0; i < std::min(letters.size(), longest); ++i) out += letters[i].bytes;
  return letters.size() > longest ? out + ".." : out;
}

constexpr size_t kLongest = 14;
double label_width(const std::vector<std::string>& labels) {
  size_t most = 0;
  for (const std::string& label : labels) most = std::max(most, letters_of(shortened(label, kLongest)).size());
  return static_cast<double>(most) * kLetter + 6;
}

Image over(const Inspection& inspection, std::span<const float> weights) {
  return overlay_heat_map(inspection.image, weights, inspection.rows, inspection.columns, kOverImage);
}

void add_titles(Drawing& out, const AttentionMaps& maps, double x, double y, double step, double middle) {
  for (size_t head = 0; head <= maps.heads.size(); ++head) {
    const std::string title = head == 0 ? "mean" : "head " + std::to_string(maps.heads[head - 1]);
    out.add(Drawing::Text{x + static_cast<double>(head) * step + middle, y, title, kSize, Drawing::Anchor::middle, false, kFaint});
  }
}

Drawing image_still(const Inspection& inspection, int64_t query) {
  const AttentionMaps& maps = inspection.maps[0];
  const bool few = maps.heads.size() * maps.layers.size() <= 4;
  const double width = few ? 224 : 112,
               height = std::round(width * static_cast<double>(inspection.image.height) / static_cast<double>(inspection.image.width));
  const double left = 60, step = width + kGap, down = height + kGap;
  const double columns = std::max<double>(2, static_cast<double>(maps.heads.size()) + 1);
  Drawing out = blank(left + columns * step, 2 * kHead + (static_cast<double>(maps.layers.size()) + 1) * down + kGap);
  const auto panel = [&](double column, double y, Image image) {
    out.add(Drawing::Image{left + column * step, y, width, height, std::move(image)});
  };
  const std::string query_name = query < 0 ? "all patches" : maps.rows[static_cast<size_t>(query)];
  out.add(Drawing::Text{left, kHead / 2, "image", kSize, Drawing::Anchor::start, false, kFaint});
  out.add(Drawing::Text{left + step, kHead / 2, "rollout, " + query_name, kSize, Drawing::Anchor::start, false, kFaint});
  panel(0, kHead, inspection.image);
  panel(1, kHead, over(inspection, patch_weights(inspection, inspection.rollout, query)));
  const double top = 2 * kHead + down;
  add_titles(out, maps, left, top - kHead / 2, step, width / 2);
  for (size_t layer = 0; layer < maps.layers.size(); ++layer) {
    const double y = top + static_cast<double>(layer) * down;
    out.add(Drawing::Text{left - 6, y + height / 2, "layer " + std::to_string(maps.layers[layer]), kSize, Drawing::Anchor::end});
    panel(0, y, over(inspection, patch_weights(inspection, maps.mean(layer), query)));
    for (size_t head = 0; head < maps.heads.size(); ++head)
      panel(static_cast<double>(head) + 1, y, over(inspection, patch_weights(inspection, maps.map(layer, head), query)));
  }
  return out;
}

// What every word of a caption attends to: a row per layer, with a panel for each word; mean of the heads.
Drawing caption_still(const Inspection& inspection) {
  const AttentionMaps& maps = inspection.maps[0];
  const double width = 112, left = 60, step = width + kGap,
               height = std::round(width * static_cast<double>(inspection.image.height) / static_cast<double>(inspection.image.width)),
               down = height + kGap + kHead;
  Drawing out = blank(left + static_cast<double>(maps.N + 1) * step, static_cast<double>(maps.layers.size()) * down + kGap);
  for (size_t layer = 0; layer < maps.layers.size(); ++layer) {
    const double y = kHead + static_cast<double>(layer) * down;
    out.add(Drawing::Text{left - 6, y + height / 2, "layer " + std::to_string(maps.layers[layer]), kSize, Drawing::Anchor::end});
    out.add(Drawing::Image{left, y, width, height, inspection.image});
    const std::vector<float> mean = maps.mean(layer);
    for (int64_t word = 0; word < maps.N; ++word) {
      const double x = left + static_cast<double>(word + 1) * step;
      out.add(Drawing::Text{x + width / 2, y - kHead / 2, shortened(maps.rows[static_cast<size_t>(word)], kLongest), kSize,
                            Drawing::Anchor::middle});
      out.add(Drawing::Image{x, y, width, height, over(inspection, patch_weights(inspection, mean, word))});
    }
  }
  return out;
}

void add_labels(Drawing& out, const std::vector<std::string>& labels, double x, double y, double step, Drawing::Anchor anchor,
                bool upward) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const double along = (static_cast<double>(i) + 0.5) * step;
    out.add(Drawing::Text{upward ? x + along : x, upward ? y : y + along, shortened(labels[i], kLongest), kSize, anchor, upward});
  }
}

Drawing text_still(const AttentionMaps& maps) {
  const auto N = static_cast<double>(maps.N), M = static_cast<double>(maps.M), heads = static_cast<double>(maps.heads.size());
  const bool few = maps.heads.size() * maps.layers.size() <= 4;
  const double cell = std::clamp(std::floor((few ? 600 : 240) / std::max(N, M)), 1.0, few ? 20.0 : 14.0);
  const bool labelled = cell >= 10, by_row = maps.causal();
  const double row_labels = labelled ? label_width(maps.rows) : 0, column_labels = labelled ? label_width(maps.columns) : 0;
  const double lines = 120, left = 60, height = cell * std::max(N, M), step = M * cell + kGap;
  const double lines_at = left + row_labels, matrix_at = lines_at + lines + column_labels + kGap + row_labels;
  const double top = kHead + column_labels;
  Drawing out = blank(matrix_at + (heads + 1) * step, top + static_cast<double>(maps.layers.size()) * (height + kGap) + kHead);
  add_titles(out, maps, matrix_at, kHead / 2, step, M * cell / 2);
  if (labelled)
    for (double panel = 0; panel <= heads; ++panel)
      add_labels(out, maps.columns, matrix_at + panel * step, top - 3, cell, Drawing::Anchor::start, true);
  for (size_t layer = 0; layer < maps.layers.size(); ++layer) {
    const double y = top + static_cast<double>(layer) * (height + kGap);
    out.add(Drawing::Text{4, y + height / 2, "layer " + std::to_string(maps.layers[layer]), kSize});
    const std::vector<float> mean = maps.mean(layer);
    const auto matrix = [&](std::span<const float> map) {
      return by_row ? heat_map(scaled_by_row(map, maps.M), maps.N, maps.M) : heat_map(map, maps.N, maps.M);
    };
    if (labelled) {
      add_labels(out, maps.rows, lines_at - 3, y, cell, Drawing::Anchor::end, false);
      add_labels(out, maps.columns, lines_at + lines + 3, y, cell, Drawing::Anchor::start, false);
      add_labels(out, maps.rows, matrix_at - 3, y, cell, Drawing::Anchor::end, false);
    }
    for (int64_t i = 0; i < maps.N; ++i)
      for (int64_t j = 0; j < maps.M; ++j)
        if (const double weight = mean[static_cast<size_t>(i * maps.M + j)]; weight >= kLeastLine)
          out.add(Drawing::Curve{lines_at, y + (static_cast<double>(i) + 0.5) * cell, lines_at + lines,
                                 y + (static_cast<double>(j) + 0.5) * cell, kLine, std::min(weight, 1.0), std::clamp(cell / 6, 0.5, 2.5)});
    out.add(Drawing::Image{matrix_at, y, M * cell, N * cell, matrix(mean)});
    for (size_t head = 0; head < maps.heads.size(); ++head)
      out.add(Drawing::Image{matrix_at + static_cast<double>(head + 1) * step, y, M * cell, N * cell, matrix(maps.map(layer, head))});
  }
  const double end = top + static_cast<double>(maps.layers.size()) * (height + kGap);
  out.add(Drawing::Text{4, end + kHead / 2 - 4,
                        by_row ? "lines: mean of the heads, weights of 0.02 or more; each matrix row scaled by its largest weight"
                               : "lines: mean of the heads, weights of 0.02 or more; each matrix scaled by its largest weight",
                        kSize, Drawing::Anchor::start, false, kFaint});
  return out;
}

}  // namespace

Drawing static_drawing(const Inspection& inspection, int64_t query) {
  if (inspection.task == ModelTask::image_captioning && inspection.maps[0].kind == "cross") return caption_still(inspection);
  return inspection.kind == InputKind::image ? image_still(inspection, query) : text_still(inspection.maps[0]);
}

}  // namespace heed::cli
