#include "heed/train/train_events.h"

#include <algorithm>
#include <cmath>

#include "heed/io/heat_map.h"
#include "heed/io/markup.h"
#include "heed/models/inspect.h"

namespace heed {
namespace {

constexpr double kTileGap = 8, kSize = 10, kLetter = kSize * kLetterStep;  // gap between tiles, font size, letter width
constexpr double kTile = 64, kMeanSide = 192, kCell = 10;  // sides of sample tiles, of the head mean, of a weight between tokens
constexpr int64_t kSheetColumns = 8, kMaxTokens = 24;
constexpr size_t kMaxLetters = 10;  // letters per label

std::string shortened_label(const std::string& label) {
  const std::vector<Letter> letters = letters_of(label);
  std::string out;
  for (size_t i = 0; i < std::min(letters.size(), kMaxLetters); ++i) out += letters[i].bytes;
  return out;
}

// The other side of an image scaled to `side`.
double scaled_side(double side, int64_t other, int64_t own) {
  return std::max(std::round(side * static_cast<double>(other) / static_cast<double>(own)), 1.0);
}

std::vector<float> top_left(std::span<const float> map, int64_t M, int64_t rows,
                            int64_t columns) {  // top left part: (N, M) -> (rows, columns)
  std::vector<float> out;
  for (int64_t i = 0; i < rows; ++i) out.insert(out.end(), map.begin() + i * M, map.begin() + i * M + columns);
  return out;
}

// How attention maps are drawn: over the image, or as a matrix between tokens.
struct View {
  const Image& image;     // empty: draw a matrix
  int64_t rows, columns;  // of the patch grid or of tokens
  int64_t N, M;           // size of a map
  std::vector<std::string> row_labels, column_labels;
  bool by_row = false;  // normalize each row to its maximum

  bool over_image() const { return image.width > 0; }
  Image tile(std::span<const float> map) const {
    if (over_image()) return overlay_heat_map(image, patches_seen(map, N, rows * columns), rows, columns);
    const std::vector<float> part = top_left(map, M, rows, columns);
    return heat_map(by_row ? scaled_by_row(part, columns) : part, rows, columns);
  }
};

Image drawn(const AttentionMaps& maps, size_t layer, const View& view) {
  const double width = view.over_image() ? kMeanSide : kCell * static_cast<double>(view.columns);
  const double height =
      view.over_image() ? scaled_side(kMeanSide, view.image.height, view.image.width) : kCell * static_cast<double>(view.rows);
  const double left = view.row_labels.empty() ? 0 : kLetter * kMaxLetters + 4,
               top = view.column_labels.empty() ? 0 : kLetter * kMaxLetters + 4;
  // The heads are half as large as the mean and next to it in two rows.
  const double small = std::max((width - kTileGap) / 2, 1.0), low = std::max((height - kTileGap) / 2, 1.0);
  const auto pairs = static_cast<double>((maps.heads.size() + 1) / 2);
  Drawing out(std::lround(left + width + pairs * (kTileGap + small)), std::lround(top + std::max(height, 2 * low + kTileGap)));
  for (size_t i = 0; i < view.row_labels.size(); ++i)
    out.add(Drawing::Text{left - 2, top + (static_cast<double>(i) + 0.5) * kCell, view.row_labels[i], kSize, Drawing::Anchor::end});
  for (size_t i = 0; i < view.column_labels.size(); ++i)
    out.add(
        Drawing::Text{left + (static_cast<double>(i) + 0.5) * kCell, top - 2, view.column_labels[i], kSize, Drawing::Anchor::start, true});
  out.add(Drawing::Image{left, top, width, height, view.tile(maps.mean(layer))});
  for (size_t head = 0; head < maps.heads.size(); ++head)
    out.add(Drawing::Image{left + width + kTileGap + static_cast<double>(head / 2) * (small + kTileGap),
                           top + static_cast<double>(head % 2) * (low + kTileGap), small, low, view.tile(maps.map(layer, head))});
  return out.pixels();
}

std::vector<std::string> token_labels(const std::vector<std::string>& tokens, int64_t count) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < std::min(count, std::ssize(tokens)); ++i) out.push_back(shortened_label(tokens[static_cast<size_t>(i)]));
  return out;
}

View view_of(const AttentionMaps& maps, const Task& task) {
  const TrackedSample& sample = task.tracked;
  if (sample.image.width > 0) {
    const auto [rows, columns] = patch_grid(*task.model, sample.image);
    if (maps.N == maps.M && rows * columns <= maps.N)
      return {.image = sample.image, .rows = rows, .columns = columns, .N = maps.N, .M = maps.M, .row_labels = {}, .column_labels = {}};
  }
  static const Image none;
  const int64_t rows = std::min(maps.N, kMaxTokens), columns = std::min(maps.M, kMaxTokens);
  const bool written = maps.kind == "cross" || maps.kind == "decoder", read = maps.kind != "decoder";
  return {.image = none,
          .rows = rows,
          .columns = columns,
          .N = maps.N,
          .M = maps.M,
          .row_labels = token_labels(written ? sample.rows : sample.columns, rows),
          .column_labels = token_labels(read ? sample.columns : sample.rows, columns),
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
  const double across = kTile + kTileGap, down = kTile + kTileGap + kSize;
  Drawing sheet(std::lround(across) * std::min(std::ssize(samples), kSheetColumns), std::lround(down) * rows);
  for (size_t i = 0; i < samples.size(); ++i) {
    const Image& image = samples[i].image;
    const double x = across * static_cast<double>(i % kSheetColumns), y = down * static_cast<double>(i / kSheetColumns);
    const double side = static_cast<double>(std::max(image.width, image.height)) / kTile;
    sheet.add(Drawing::Image{x, y, static_cast<double>(image.width) / side, static_cast<double>(image.height) / side, image});
    sheet.add(Drawing::Text{x, y + kTile + kSize / 2 + 1, shortened_label(samples[i].truth), kSize});
  }
  events.image("samples", step, sheet.pixels());
}

void write_attention(EventFile& events, const Task& task, int64_t step) {
  if (task.tracked.inputs.empty() || !has_maps(*task.model)) return;
  const TensorMap out = (*task.model)(task.tracked.inputs, {.attentions = true});
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
