#include "heed/data/decoded.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "heed/core/parallel.h"

namespace heed {
namespace {

constexpr int64_t kFilesPerStep = 64;  // files between two calls of `done`

}  // namespace

DecodedImages decode_images(ImageData data, const DecodeOptions& options) {
  const auto all = std::make_shared<const ImageData>(std::move(data));
  const auto prepare = options.prepare;
  std::vector<int64_t> good(static_cast<size_t>(all->count()));
  std::iota(good.begin(), good.end(), 0);
  if (!all->files) {
    DecodedImages out{.data = chosen(*all, good)};
    if (prepare) out.data.image = [all, prepare](int64_t i) { return prepare(all->image(i)); };
    return out;
  }

  DecodedImages out;
  auto cache = std::make_shared<std::vector<Image>>(good.size());
  std::vector<ImageSize> sizes(good.size());
  std::vector<std::string> errors(good.size());
  bool fits = options.max_bytes > 0;
  for (int64_t begin = 0; begin < all->count(); begin += kFilesPerStep) {
    const int64_t count = std::min(kFilesPerStep, all->count() - begin);
    parallel_tasks(count, [&](int64_t task) {
      const auto i = static_cast<size_t>(begin + task);
      Image image;
      try {
        image = all->image(begin + task);
        sizes[i] = {image.width, image.height};
        Image ready = prepare ? prepare(image) : std::move(image);
        if (options.max_bytes > 0) cache->at(i) = std::move(ready);
      } catch (const FileError& error) {
        errors[i] = (image.pixels.empty() ? "" : all->name(begin + task) + ": ") + error.what();
      }
    });
    for (int64_t i = begin; i < begin + count; ++i) out.bytes += std::ssize(cache->at(static_cast<size_t>(i)).pixels);
    const int64_t first = fits ? 0 : begin;  // of the images still in memory
    fits = fits && out.bytes <= options.max_bytes;
    for (int64_t i = first; i < begin + count && !fits; ++i) cache->at(static_cast<size_t>(i)) = {};
    if (options.done) options.done(count);
  }

  std::erase_if(good, [&](int64_t i) { return !errors[static_cast<size_t>(i)].empty(); });
  for (const std::string& message : errors)
    if (!message.empty()) out.bad.push_back(message);
  for (const int64_t i : good) out.sizes.push_back(sizes[static_cast<size_t>(i)]);
  out.data = chosen(*all, good);
  if (!fits) out.bytes = 0;
  if (fits) {
    out.data.image = [cache, good](int64_t i) { return cache->at(static_cast<size_t>(good.at(static_cast<size_t>(i)))); };
  } else if (prepare) {
    out.data.image = [read = out.data.image, prepare](int64_t i) { return prepare(read(i)); };
  }
  return out;
}

}  // namespace heed
