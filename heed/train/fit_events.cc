#include "heed/train/fit_events.h"

#include <algorithm>
#include <cmath>

#include "heed/io/heat_map.h"
#include "heed/io/markup.h"
#include "heed/models/inspect.h"

namespace heed {
namespace {

constexpr double kBetween = 8, kSize = 10, kLetter = kSize * kLetterStep;  // between tiles, of text, of one letter
constexpr double kTile = 64, kLarge = 192, kCell = 10;                     // of sheets, of the mean over heads, of a weight between texts
constexpr int64_t kSheetColumns = 8, kMostTokens = 24;
constexpr size_t kLongest = 10;  // letters of a label

std::string shortened(const std::string& label) {
  const std::vector<Letter> letters = letters_of(label);
  std::string out;
  for (size_t i = 0; i < std::min(letters.size(), kLongest); ++i) out += letters[i].bytes;
  return out;
}

// A number of pixels along the other side.
double in_proportion(double side, int64_t other, int64_t own) {
  return std::max(std::round(side * static_cast<double>(other) / static_cast<double>(own)), 1.0);
}

std::vector<float> beginning(std::span<const float> map, int64_t M, int64_t rows, int64_t columns) {  // (N, M) -> (rows, columns)
  std::vector<float> out;
  for (int64_t i = 0; i < rows; ++i) out.insert(out.end(), map.begin() + i * M, map.begin() + i * M + columns);
  return out;
}

// How the maps of one kind of attention are shown: over the picture, or as weights between tokens.
struct View {
  const Picture& picture;  // of no size: weights
  int64_t rows, columns;   // of the grid or of tokens
  int64_t N, M;            // of a map
  std::vector<std::string> row_labels, column_labels;
  bool by_row = false;  // each row by its own largest weight

  bool over_picture() const { return picture.width > 0; }
  Picture tile(std::span<const float> map) const {
    if (over_picture()) return heat_over(picture, patches_seen(map, N, rows * columns), rows, columns);
    const std::vector<float> part = beginning(map, M, rows, columns);
    return heat_map(by_row ? scaled_by_row(part, columns) : part, rows, columns);
  }
};

Picture drawn(const AttentionMaps& maps, size_t layer, const View& view) {
  const double width = view.over_picture() ? kLarge : kCell * static_cast<double>(view.columns);
  const double height =
      view.over_picture() ? in_proportion(kLarge, view.picture.height, view.picture.width) : kCell * static_cast<double>(view.rows);
  const double left = view.row_labels.empty() ? 0 : kLetter * kLongest + 4, top = view.column_labels.empty() ? 0 : kLetter * kLongest + 4;
  // Beside the mean, its heads are half as large and stand in two rows.
  const double small = std::max((width - kBetween) / 2, 1.0), low = std::max((height - kBetween) / 2, 1.0);
  const auto pairs = static_cast<double>((maps.heads.size() + 1) / 2);
  Drawing out(std::lround(left + width + pairs * (kBetween + small)), std::lround(top + std::max(height, 2 * low + kBetween)));
  for (size_t i = 0; i < view.row_labels.size(); ++i)
    out.add(Drawing::Text{left - 2, top + (static_cast<double>(i) + 0.5) * kCell, view.row_labels[i], kSize, Drawing::Anchor::end});
  for (size_t i = 0; i < view.column_labels.size(); ++i)
    out.add(
        Drawing::Text{left + (static_cast<double>(i) + 0.5) * kCell, top - 2, view.column_labels[i], kSize, Drawing::Anchor::start, true});
  out.add(Drawing::Image{left, top, width, height, view.tile(maps.mean(layer))});
  for (size_t head = 0; head < maps.heads.size(); ++head)
    out.add(Drawing::Image{left + width + kBetween + static_cast<double>(head / 2) * (small + kBetween),
                           top + static_cast<double>(head % 2) * (low + kBetween), small, low, view.tile(maps.map(layer, head))});
  return out.pixels();
}

std::vector<std::string> labels_of(const std::vector<std::string>& tokens, int64_t count) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < std::min(count, std::ssize(tokens)); ++i) out.push_back(shortened(tokens[static_cast<size_t>(i)]));
  return out;
}

View view_of(const AttentionMaps& maps, const Task& task) {
  const Followed& followed = task.followed;
  if (followed.picture.width > 0) {
    const auto [rows, columns] = patch_grid(*task.model, followed.picture);
    if (maps.N == maps.M && rows * columns <= maps.N)
      return {
          .picture = followed.picture, .rows = rows, .columns = columns, .N = maps.N, .M = maps.M, .row_labels = {}, .column_labels = {}};
  }
  static const Picture none;
  const int64_t rows = std::min(maps.N, kMostTokens), columns = std::min(maps.M, kMostTokens);
  const bool written = maps.kind == "cross" || maps.kind == "decoder", read = maps.kind != "decoder";
  return {.picture = none,
          .rows = rows,
          .columns = columns,
          .N = maps.N,
          .M = maps.M,
          .row_labels = labels_of(written ? followed.rows : followed.columns, rows),
          .column_labels = labels_of(read ? followed.columns : followed.rows, columns),
          .by_row = maps.causal()};
}

}  // namespace

void write_histograms(EventFile& events, const std::vector<Parameter>& parameters, int64_t step) {
  for (const Parameter& parameter : parameters) {
    events.histogram("weights/" + parameter.name, step, parameter.tensor.to_vector<float>());
    if (parameter.tensor.grad().defined())
      events.histogram("gradients/" + parameter.name, step, parameter.tensor.grad().to_vector<float>());
  }
}

void write_first_samples(EventFile& events, const Task& task, int64_t step) {
  if (!task.first_samples) return;
  const std::vector<Sample> samples = task.first_samples();
  if (samples.empty()) return;
  const int64_t rows = (std::ssize(samples) + kSheetColumns - 1) / kSheetColumns;
  const double across = kTile + kBetween, down = kTile + kBetween + kSize;
  Drawing sheet(std::lround(across) * std::min(std::ssize(samples), kSheetColumns), std::lround(down) * rows);
  for (size_t i = 0; i < samples.size(); ++i) {
    const Picture& picture = samples[i].picture;
    const double x = across * static_cast<double>(i % kSheetColumns), y = down * static_cast<double>(i / kSheetColumns);
    const double side = static_cast<double>(std::max(picture.width, picture.height)) / kTile;
    sheet.add(Drawing::Image{x, y, static_cast<double>(picture.width) / side, static_cast<double>(picture.height) / side, picture});
    sheet.add(Drawing::Text{x, y + kTile + kSize / 2 + 1, shortened(samples[i].truth), kSize});
  }
  events.image("samples", step, sheet.pixels());
}

void write_attention(EventFile& events, const Task& task, int64_t step) {
  if (task.followed.inputs.empty() || !has_maps(*task.model)) return;
  const Named out = (*task.model)(task.followed.inputs, {.attentions = true});
  for (const std::string kind : {"", "encoder", "decoder", "cross"}) {
    const std::string name = kind + (kind.empty() ? "" : "_") + "attention";
    if (!out.contains(name + "s.0")) continue;
    const AttentionMaps maps = maps_in(out, name + "s.", kind, {});
    const View view = view_of(maps, task);
    for (size_t layer = 0; layer < maps.layers.size(); ++layer)
      events.image(name + "/layer_" + std::to_string(layer), step, drawn(maps, layer, view));
  }
}

}  // namespace heed
