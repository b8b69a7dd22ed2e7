#include "heed/data/decoded.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "heed/core/parallel.h"

namespace heed {
namespace {

constexpr int64_t kAtOnce = 64;  // files between two calls of `done`

}  // namespace

Decoded decode_all(PictureData data, const DecodeOptions& options) {
  const auto all = std::make_shared<const PictureData>(std::move(data));
  const auto prepare = options.prepare;
  std::vector<int64_t> good(static_cast<size_t>(all->count()));
  std::iota(good.begin(), good.end(), 0);
  if (!all->files) {
    Decoded out{.data = chosen(*all, good)};
    if (prepare) out.data.picture = [all, prepare](int64_t i) { return prepare(all->picture(i)); };
    return out;
  }

  Decoded out;
  auto kept = std::make_shared<std::vector<Picture>>(good.size());
  std::vector<PictureSize> sizes(good.size());
  std::vector<std::string> faults(good.size());
  bool keeps = options.most_bytes > 0;
  for (int64_t begin = 0; begin < all->count(); begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, all->count() - begin);
    parallel_tasks(count, [&](int64_t task) {
      const auto i = static_cast<size_t>(begin + task);
      Picture picture;
      try {
        picture = all->picture(begin + task);
        sizes[i] = {picture.width, picture.height};
        Picture ready = prepare ? prepare(picture) : std::move(picture);
        if (options.most_bytes > 0) kept->at(i) = std::move(ready);
      } catch (const FileError& error) {
        faults[i] = (picture.pixels.empty() ? "" : all->name(begin + task) + ": ") + error.what();
      }
    });
    for (int64_t i = begin; i < begin + count; ++i) out.bytes += std::ssize(kept->at(static_cast<size_t>(i)).pixels);
    const int64_t first = keeps ? 0 : begin;  // of those that are still there
    keeps = keeps && out.bytes <= options.most_bytes;
    for (int64_t i = first; i < begin + count && !keeps; ++i) kept->at(static_cast<size_t>(i)) = {};
    if (options.done) options.done(count);
  }

  std::erase_if(good, [&](int64_t i) { return !faults[static_cast<size_t>(i)].empty(); });
  for (const std::string& fault : faults)
    if (!fault.empty()) out.bad.push_back(fault);
  for (const int64_t i : good) out.sizes.push_back(sizes[static_cast<size_t>(i)]);
  out.data = chosen(*all, good);
  if (!keeps) out.bytes = 0;
  if (keeps) {
    out.data.picture = [kept, good](int64_t i) { return kept->at(static_cast<size_t>(good.at(static_cast<size_t>(i)))); };
  } else if (prepare) {
    out.data.picture = [read = out.data.picture, prepare](int64_t i) { return prepare(read(i)); };
  }
  return out;
}

}  // namespace heed
