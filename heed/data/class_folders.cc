// A folder of image files for every class, below a folder for every part where there are such. Names decide the order.
#include <algorithm>
#include <memory>

#include "heed/data/picture_sources.h"
#include "heed/io/image_files.h"
#include "heed/io/printable.h"

namespace heed::detail {
namespace {

std::vector<std::string> folders_in(const Path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && !entry.path().filename().string().starts_with('.')) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Images that are in no folder of a class.
std::vector<Path> images_beside(const Path& folder) {
  std::vector<Path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() && is_image_name(entry.path()) && !entry.path().filename().string().starts_with('.'))
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
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
  PictureData out{.source = printable(folder.string()), .files = true};
  Path naming = part_folder(folder, DataPart::train);  // the classes are those of train, where it is there
  for (const DataPart other : {DataPart::validation, DataPart::test})
    if (naming.empty()) naming = part_folder(folder, other);
  const std::vector<std::string> classes = folders_in(naming);
  check<FileError>(!classes.empty(), out.source,
                   ": found no folders in it, expected one with image files for every class, or files of CIFAR or MNIST");
  for (const std::string& name : classes) out.classes.push_back(printable(name));
  const Path root = part_folder(folder, part);
  const auto files = std::make_shared<std::vector<Path>>();
  std::vector<Path> passed_over;
  if (!root.empty()) {
    for (const std::string& name : folders_in(root)) {
      const auto label = std::lower_bound(classes.begin(), classes.end(), name);
      check<FileError>(label != classes.end() && *label == name, printable((root / name).string()), ": found a class that ",
                       printable(naming.string()), " has not, expected the same classes in every part");
      const FolderImages found = find_images(root / name);
      check<FileError>(!found.images.empty(), printable((root / name).string()),
                       ": found no images in the folder, expected files with .png, .jpg, .jpeg, .webp or .bmp",
                       found.passed_over.empty() ? "" : "; " + passed_over_note(found.passed_over));
      files->insert(files->end(), found.images.begin(), found.images.end());
      out.labels.resize(files->size(), label - classes.begin());
      passed_over.insert(passed_over.end(), found.passed_over.begin(), found.passed_over.end());
    }
    if (!passed_over.empty()) out.notes.push_back(passed_over_note(passed_over));
    if (const std::vector<Path> beside = images_beside(root); !beside.empty())
      out.notes.push_back(std::to_string(beside.size()) + " images in " + printable(root.string()) +
                          " were passed over, as they are in no class folder: " + printable(beside[0].filename().string()) +
                          (beside.size() > 1 ? ", ..." : ""));
  }
  out.picture = [files](int64_t i) { return read_picture(files->at(static_cast<size_t>(i))); };
  out.size = [files](int64_t i) { return read_picture_size(files->at(static_cast<size_t>(i))); };
  out.file = [files](int64_t i) { return files->at(static_cast<size_t>(i)); };
  out.name = [files](int64_t i) { return printable(files->at(static_cast<size_t>(i)).string()); };
  return out;
}

}  // namespace heed::detail
