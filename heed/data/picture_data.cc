// What a folder of pictures is, by the names of the files in it.
#include "heed/data/picture_data.h"

#include <charconv>
#include <memory>
#include <sstream>

#include "heed/core/nearest.h"
#include "heed/data/picture_sources.h"
#include "heed/data/shapes.h"

namespace heed {
namespace {

constexpr int64_t kMostShapes = 10'000'000;

// "shapes" or "shapes:COUNT", the pictures to learn from; those to check with are a fifth of that, and others.
PictureData shapes_part(const std::string& where, DataPart part) {
  ShapesOptions options;
  if (where.size() > 6) {
    const char *const begin = where.data() + 7, *const end = where.data() + where.size();
    const auto [rest, error] = std::from_chars(begin, end, options.count);
    check<FileError>(error == std::errc() && rest == end && options.count >= 1 && options.count <= kMostShapes, where, ": found ",
                     in_quotes({begin, end}), " behind the colon, expected how many pictures, from 1 to ", kMostShapes);
  }
  options.seed = part == DataPart::train ? 1 : part == DataPart::validation ? 2 : 3;
  if (part != DataPart::train) options.count = std::max<int64_t>(options.count / 5, 10);
  return made_shapes(options);
}

}  // namespace

std::vector<std::string> detail::read_names(const Path& path, int64_t count) {
  std::istringstream lines(read_text(path, 1 << 20));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  check<FileError>(count == 0 ? !names.empty() : std::ssize(names) == count, path.string(), ": found ", names.size(), " names, expected ",
                   count == 0 ? "at least one" : std::to_string(count), ", one a line");
  return names;
}

std::vector<std::string> detail::numbered_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

PictureData read_pictures(const std::string& where, DataPart part) {
  if (where == "shapes" || where.starts_with("shapes:")) return shapes_part(where, part);
  const Path folder = where;
  std::error_code ignored;
  check<FileError>(std::filesystem::exists(folder, ignored), where, ": found nothing there, expected a folder of pictures, or shapes",
                   did_you_mean(where, {"shapes"}));
  check<FileError>(std::filesystem::is_directory(folder, ignored), where, ": found a file, expected a folder of pictures");
  if (detail::is_cifar(folder)) return detail::read_cifar(folder, part);
  if (detail::is_idx(folder)) return detail::read_idx_pictures(folder, part);
  return detail::read_class_folders(folder, part);
}

PictureData chosen(PictureData data, std::vector<int64_t> which) {
  const auto all = std::make_shared<const PictureData>(std::move(data));
  const auto places = std::make_shared<const std::vector<int64_t>>(std::move(which));
  PictureData out{.source = all->source, .classes = all->classes, .files = all->files, .notes = all->notes};
  out.labels.reserve(places->size());
  for (const int64_t i : *places) {
    check(i >= 0 && i < all->count(), "chosen: found picture ", i, ", expected one below ", all->count());
    out.labels.push_back(all->labels[static_cast<size_t>(i)]);
  }
  out.picture = [all, places](int64_t i) { return all->picture(places->at(static_cast<size_t>(i))); };
  out.name = [all, places](int64_t i) { return all->name(places->at(static_cast<size_t>(i))); };
  if (all->file) out.file = [all, places](int64_t i) { return all->file(places->at(static_cast<size_t>(i))); };
  if (all->size) out.size = [all, places](int64_t i) { return all->size(places->at(static_cast<size_t>(i))); };
  return out;
}

}  // namespace heed
