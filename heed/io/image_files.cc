#include "heed/io/image_files.h"

#include <algorithm>
#include <cctype>

#include "heed/io/paths.h"
#include "heed/io/printable.h"

namespace heed {
namespace {

constexpr size_t kNamesShown = 5;

bool is_hidden(const Path& path) { return path.filename().string().starts_with('.'); }

// folders: the one that is listed and those above it; a link back to one of them is not followed.
void add_images(const Path& folder, std::vector<Path>& folders, FolderImages& out) {
  namespace fs = std::filesystem;
  std::error_code error;
  const Path real = fs::canonical(folder, error);
  if (error) refuse_path(fs::filesystem_error("", folder, error));
  if (std::find(folders.begin(), folders.end(), real) != folders.end()) return;
  folders.push_back(real);
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    if (is_hidden(each->path())) continue;
    std::error_code ignored;  // a link to nothing is neither a folder nor a file
    if (each->is_directory(ignored))
      add_images(each->path(), folders, out);
    else
      (each->is_regular_file(ignored) && is_image_name(each->path()) ? out.images : out.skipped_files).push_back(each->path());
  }
  if (error) refuse_path(fs::filesystem_error("", folder, error));
  folders.pop_back();
}

}  // namespace

bool is_image_name(const Path& path) {
  std::string end = path.extension().string();
  for (char& letter : end) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return end == ".png" || end == ".jpg" || end == ".jpeg" || end == ".webp" || end == ".bmp";
}

FolderImages find_images(const Path& folder) {
  FolderImages out;
  std::vector<Path> folders;
  add_images(folder, folders, out);
  std::sort(out.images.begin(), out.images.end());
  std::sort(out.skipped_files.begin(), out.skipped_files.end());
  return out;
}

std::string skipped_files_note(const std::vector<Path>& files) {
  if (files.empty()) return "";
  std::string out = std::to_string(files.size()) + (files.size() == 1 ? " file was" : " files were") + " skipped: ";
  for (size_t i = 0; i < std::min(files.size(), kNamesShown); ++i) out += (i > 0 ? ", " : "") + printable(files[i].string());
  if (files.size() > kNamesShown) out += " and " + std::to_string(files.size() - kNamesShown) + " more";
  return out + " (heed reads " + kReadFormats + ")";
}

}  // namespace heed
