// One row per class. Many classes are arranged in several columns, so that the sheet is roughly square.
#include "heed/cli/data_sheet.h"

#include <algorithm>
#include <cmath>

#include "heed/core/parallel.h"
#include "heed/io/markup.h"
#include "heed/io/resize.h"

namespace heed::cli {
namespace {

constexpr int64_t kTile = 64, kSheetGap = 4, kMargin = 16, kTitle = 40;
constexpr double kSheetLetterSize = 20, kSheetLetter = kSheetLetterSize * kLetterStep;
constexpr size_t kLongestClass = 16;  // characters of a class name
constexpr Colour kSheetFaint{110, 110, 110}, kMissing{236, 236, 236};

std::string shortened_class(const std::string& name) {
  const std::vector<Letter> letters = letters_of(name);
  std::string out;
  for (size_t i = 0; i < std::min(letters.size(), kLongestClass); ++i) out += letters[i].bytes;
  return letters.size() > kLongestClass ? out + ".." : out;
}

// Scaled to fit a tile: large images are resized, small ones enlarged by an integer factor, so that pixels stay square.
Drawing::Image placed(Image image, int64_t x, int64_t y) {
  const int64_t longer = std::max(image.width, image.height);
  if (longer > kTile) {
    const auto fitted = [&](int64_t size) { return std::max<int64_t>(size * kTile / longer, 1); };
    image = resize(image, fitted(image.width), fitted(image.height));
  }
  const int64_t scale = std::max<int64_t>(kTile / longer, 1), width = scale * image.width, height = scale * image.height;
  return {static_cast<double>(x + (kTile - width) / 2), static_cast<double>(y + (kTile - height) / 2), static_cast<double>(width),
          static_cast<double>(height), std::move(image)};
}

// The tiles of one class, at most options.each. images: indices of the class
std::vector<Image> tiles_of(const ImageData& data, const std::vector<int64_t>& images, const SheetOptions& options) {
  std::vector<Image> out;
  if (images.empty()) return out;
  if (options.augment) {
    const int64_t which = images[images.size() / 2];
    out.push_back(data.image(which));
    for (uint64_t i = 1; i < static_cast<uint64_t>(options.each); ++i)
      out.push_back(augmented(out.front(), *options.augment, {options.seed, static_cast<uint64_t>(which) << 16 | i}));
    return out;
  }
  const int64_t count = std::min(options.each, std::ssize(images));
  for (int64_t i = 0; i < count; ++i) out.push_back(data.image(images[static_cast<size_t>(i * std::ssize(images) / count)]));
  return out;
}

}  // namespace

Drawing contact_sheet(const ImageData& data, const std::string& title, const SheetOptions& options) {
  const auto classes = std::ssize(data.classes);
  std::vector<std::vector<int64_t>> of_class(data.classes.size());
  for (int64_t i = 0; i < data.count(); ++i) of_class[static_cast<size_t>(data.labels[static_cast<size_t>(i)])].push_back(i);
  size_t longest = 0;
  for (const std::string& name : data.classes) longest = std::max(longest, letters_of(shortened_class(name)).size());

  const int64_t names = std::lround(static_cast<double>(longest) * kSheetLetter) + 2 * kSheetGap;
  const int64_t step = kTile + kSheetGap, block = names + options.each * step + kMargin;
  // The number of columns that makes the sheet about square.
  const auto blocks =
      std::clamp<int64_t>(std::lround(std::sqrt(static_cast<double>(classes * step) / static_cast<double>(block))), 1, classes);
  const int64_t rows = (classes + blocks - 1) / blocks;
  const auto title_width = std::lround(static_cast<double>(letters_of(title).size()) * kSheetLetter);
  Drawing sheet(kMargin + std::max(blocks * block, title_width + kMargin), kTitle + kMargin + rows * step + kMargin);
  sheet.add(Drawing::Text{kMargin, kMargin + kSheetLetterSize / 2, title, kSheetLetterSize, Drawing::Anchor::start, false, kSheetFaint});

  std::vector<std::vector<Image>> tiles(data.classes.size());
  parallel_tasks(classes, [&](int64_t task) {
    const auto place = static_cast<size_t>(task);
    tiles[place] = tiles_of(data, of_class[place], options);
  });
  for (int64_t i = 0; i < classes; ++i) {
    const auto place = static_cast<size_t>(i);
    const int64_t left = kMargin + i / rows * block, top = kTitle + kMargin + i % rows * step;
    sheet.add(Drawing::Text{static_cast<double>(left + names - 2 * kSheetGap), static_cast<double>(top + kTile / 2),
                            shortened_class(data.classes[place]), kSheetLetterSize, Drawing::Anchor::end});
    for (int64_t column = 0; column < options.each; ++column) {
      const int64_t x = left + names + column * step;
      if (column < std::ssize(tiles[place]))
        sheet.add(placed(std::move(tiles[place][static_cast<size_t>(column)]), x, top));
      else
        sheet.add(Drawing::Rectangle{static_cast<double>(x), static_cast<double>(top), kTile, kTile, kMissing});
    }
  }
  return sheet;
}

}  // namespace heed::cli
