// Detects the format of an image folder by its file names.
#include "heed/data/image_data.h"

#include <memory>
#include <sstream>

#include "heed/core/nearest.h"
#include "heed/core/parse.h"
#include "heed/data/image_sources.h"
#include "heed/data/shapes.h"

namespace heed {
namespace {

constexpr int64_t kMaxSynthetic = 10'000'000;

}  // namespace

detail::SyntheticPart detail::synthetic_part(const std::string& where, DataPart part, int64_t default_count) {
  SyntheticPart out{.count = default_count, .seed = part == DataPart::train ? 1u : part == DataPart::validation ? 2u : 3u};
  if (const size_t colon = where.find(':'); colon != std::string::npos) {
    const std::string typed = where.substr(colon + 1);
    out.count = parse_number<int64_t>(typed).value_or(0);
    check<FileError>(out.count >= 1 && out.count <= kMaxSynthetic, where, ": found ", in_quotes(typed),
                     " after the colon, expected the number of images, from 1 to ", kMaxSynthetic);
  }
  if (part != DataPart::train) out.count = std::max<int64_t>(out.count / 5, 10);
  return out;
}

std::vector<std::string> detail::read_names(const Path& path, int64_t count) {
  std::istringstream lines(read_text(path, 1 << 20));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  check<FileError>(count == 0 ? !names.empty() : std::ssize(names) == count, path.string(), ": found ", names.size(), " names, expected ",
                   count == 0 ? "at least one" : std::to_string(count), ", one per line");
  return names;
}

std::vector<std::string> detail::numbered_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

ImageData read_images(const std::string& where, DataPart part) {
  if (where == "shapes" || where.starts_with("shapes:")) return synthetic_shapes(detail::synthetic_options<ShapesOptions>(where, part));
  const Path folder = where;
  std::error_code ignored;
  check<FileError>(std::filesystem::exists(folder, ignored), where, ": found nothing there, expected a folder of images, or shapes",
                   did_you_mean(where, {"shapes"}));
  check<FileError>(std::filesystem::is_directory(folder, ignored), where, ": found a file, expected a folder of images");
  if (detail::is_cifar(folder)) return detail::read_cifar(folder, part);
  if (detail::is_idx(folder)) return detail::read_idx_images(folder, part);
  return detail::read_class_folders(folder, part);
}

ImageData chosen(ImageData data, std::vector<int64_t> which) {
  const auto all = std::make_shared<const ImageData>(std::move(data));
  const auto indices = std::make_shared<const std::vector<int64_t>>(std::move(which));
  ImageData out{.source = all->source, .classes = all->classes, .files = all->files, .notes = all->notes};
  out.labels.reserve(indices->size());
  for (const int64_t i : *indices) {
    check(i >= 0 && i < all->count(), "chosen: found image ", i, ", expected one below ", all->count());
    out.labels.push_back(all->labels[static_cast<size_t>(i)]);
  }
  out.image = [all, indices](int64_t i) { return all->image(indices->at(static_cast<size_t>(i))); };
  out.name = [all, indices](int64_t i) { return all->name(indices->at(static_cast<size_t>(i))); };
  if (all->file) out.file = [all, indices](int64_t i) { return all->file(indices->at(static_cast<size_t>(i))); };
  if (all->size) out.size = [all, indices](int64_t i) { return all->size(indices->at(static_cast<size_t>(i))); };
  return out;
}

}  // namespace heed
