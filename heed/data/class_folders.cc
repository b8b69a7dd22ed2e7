// A folder of PNG and JPEG files for every class, below a folder for every part where there are such. Names decide the order.
#include <algorithm>
#include <cctype>
#include <memory>

#include "heed/data/picture_sources.h"

namespace heed::detail {
namespace {

bool is_picture(const Path& path) {
  std::string end = path.extension();
  for (char& letter : end) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

std::vector<std::string> folders_in(const Path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && !entry.path().filename().string().starts_with('.')) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Path> pictures_in(const Path& folder) {
  std::vector<Path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && is_picture(entry.path())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Where the classes of a part lie; an empty path: the part is not there. A folder "train" full of pictures is a class of that name.
Path part_folder(const Path& folder, DataPart part) {
  const auto one_of = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (!folders_in(folder / name).empty()) return folder / name;
    return Path();
  };
  const Path train = one_of({"train"}), validation = one_of({"validation", "val"}), test = one_of({"test"});
  const bool parts = !train.empty() || !validation.empty() || !test.empty();
  if (!parts) return part == DataPart::train ? folder : Path();
  return part == DataPart::train ? train : part == DataPart::validation ? validation : test;
}

}  // namespace

PictureData read_class_folders(const Path& folder, DataPart part) {
  PictureData out{.source = folder.string()};
  Path naming = part_folder(folder, DataPart::train);  // the classes are those of train, where it is there
  for (const DataPart other : {DataPart::validation, DataPart::test})
    if (naming.empty()) naming = part_folder(folder, other);
  out.classes = folders_in(naming);
  check<FileError>(!out.classes.empty(), folder.string(),
                   ": found no folders in it, expected one with PNG or JPEG files for every class, or files of CIFAR or MNIST");
  const Path root = part_folder(folder, part);
  const auto files = std::make_shared<std::vector<Path>>();
  if (!root.empty())
    for (const std::string& name : folders_in(root)) {
      const auto label = std::lower_bound(out.classes.begin(), out.classes.end(), name);
      check<FileError>(label != out.classes.end() && *label == name, (root / name).string(), ": found a class that ", naming.string(),
                       " has not, expected the same classes in every part");
      const std::vector<Path> paths = pictures_in(root / name);
      check<FileError>(!paths.empty(), (root / name).string(),
                       ": found no pictures in the folder, expected files with .png, .jpg or .jpeg");
      files->insert(files->end(), paths.begin(), paths.end());
      out.labels.resize(files->size(), label - out.classes.begin());
    }
  out.picture = [files](int64_t i) { return read_picture(files->at(static_cast<size_t>(i))); };
  out.name = [files](int64_t i) { return files->at(static_cast<size_t>(i)).string(); };
  return out;
}

}  // namespace heed::detail
