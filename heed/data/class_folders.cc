// One folder of image files per class, optionally below train/, validation/ and test/. Sorted by name.
#include <algorithm>
#include <memory>

#include "heed/data/image_sources.h"
#include "heed/data/text_parts.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"

namespace heed::detail {
namespace {

// Empty if there is no such folder. An entry that cannot be examined, such as a link to itself, is no folder.
std::vector<std::string> folders_in(const Path& folder) {
  std::vector<std::string> names;
  if (!is_folder(folder)) return names;
  for (const Path& entry : folder_entries(folder)) {
    std::error_code error;
    const bool found = std::filesystem::is_directory(entry, error);
    check(!is_system_failure(error), entry.string(), ": cannot be examined (", error.message(), ")");
    if (found && !entry.filename().string().starts_with('.')) names.push_back(entry.filename());
  }
  return names;
}

// Images outside the class folders.
std::vector<Path> images_outside_classes(const Path& folder) {
  std::vector<Path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() && is_image_name(entry.path()) && !entry.path().filename().string().starts_with('.'))
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// The folder with the classes of a part; empty if there is no such part. A folder "train" that contains images is a class.
Path part_folder(const Path& folder, DataPart part) {
  const auto one_of = [folder, entries = folders_in(folder)](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      for (const std::string& entry : entries)
        if (plain_name(entry) == name && !folders_in(folder / entry).empty()) return folder / entry;
    return Path();
  };
  const Path train = one_of({"train"}), validation = one_of(kValidationNames), test = one_of({"test"});
  const bool parts = !train.empty() || !validation.empty() || !test.empty();
  if (!parts) return part == DataPart::train ? folder : Path();
  return part == DataPart::train ? train : part == DataPart::validation ? validation : test;
}

// "unused" next to train/: it is neither a part nor a class.
std::string other_folders(const Path& folder) {
  std::string out;
  const auto is_part = [&](const Path& path) {
    return path == part_folder(folder, DataPart::train) || path == part_folder(folder, DataPart::validation) ||
           path == part_folder(folder, DataPart::test);
  };
  for (const std::string& name : folders_in(folder))
    if (!is_part(folder / name)) out += (out.empty() ? "" : ", ") + printable(name);
  return out;
}

std::string outside_note(const Path& folder, const std::vector<Path>& images) {
  const std::string where = " in " + printable(folder.string()), first = printable(images[0].filename().string());
  if (images.size() == 1) return "1 image" + where + " was skipped, because it is in no class folder: " + first;
  return std::to_string(images.size()) + " images" + where + " were skipped, because they are in no class folder: " + first + ", ...";
}

}  // namespace

ImageData read_class_folders(const Path& folder, DataPart part) {
  ImageData out{.source = printable(folder.string()), .files = true};
  Path class_root = part_folder(folder, DataPart::train);  // classes are those of train, if it exists
  for (const DataPart other : {DataPart::validation, DataPart::test})
    if (class_root.empty()) class_root = part_folder(folder, other);
  const std::vector<std::string> classes = folders_in(class_root);
  check<FileError>(!classes.empty(), out.source,
                   ": found no folders in it, expected one folder of image files per class, or CIFAR or MNIST files");
  for (const std::string& name : classes) out.classes.push_back(printable(name));
  const Path root = part_folder(folder, part);
  const auto files = std::make_shared<std::vector<Path>>();
  std::vector<Path> skipped;
  if (!root.empty()) {
    for (const std::string& name : folders_in(root)) {
      const auto label = std::lower_bound(classes.begin(), classes.end(), name);
      check<FileError>(label != classes.end() && *label == name, printable((root / name).string()), ": found a class that is not in ",
                       printable(class_root.string()), ", expected the same classes in every part");
      const FolderImages found = find_images(root / name);
      check<FileError>(!found.images.empty(), printable((root / name).string()),
                       ": found no images in the folder, expected files with .png, .jpg, .jpeg, .webp or .bmp",
                       found.skipped_files.empty() ? "" : "; " + skipped_files_note(found.skipped_files));
      files->insert(files->end(), found.images.begin(), found.images.end());
      out.labels.resize(files->size(), label - classes.begin());
      skipped.insert(skipped.end(), found.skipped_files.begin(), found.skipped_files.end());
    }
    if (!skipped.empty()) out.notes.push_back(skipped_files_note(skipped));
    if (const std::vector<Path> outside = images_outside_classes(root); !outside.empty()) out.notes.push_back(outside_note(root, outside));
    if (const std::string others = part == DataPart::train && root != folder ? other_folders(folder) : ""; !others.empty())
      out.notes.push_back("these folders in " + out.source + " are neither train, validation nor test, and were skipped: " + others);
  }
  out.image = [files](int64_t i) { return read_image(files->at(static_cast<size_t>(i))); };
  out.size = [files](int64_t i) { return read_image_size(files->at(static_cast<size_t>(i))); };
  out.file = [files](int64_t i) { return files->at(static_cast<size_t>(i)); };
  out.name = [files](int64_t i) { return printable(files->at(static_cast<size_t>(i)).string()); };
  return out;
}

}  // namespace heed::detail
