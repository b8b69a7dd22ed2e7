#include "heed/io/image_files.h"

#include <algorithm>
#include <cctype>

#include "heed/io/printable.h"

namespace heed {
namespace {

constexpr size_t kNamesShown = 5;

bool is_hidden(const Path& path) { return path.filename().string().starts_with('.'); }

}  // namespace

bool is_image_name(const Path& path) {
  std::string end = path.extension().string();
  for (char& letter : end) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return end == ".png" || end == ".jpg" || end == ".jpeg" || end == ".webp" || end == ".bmp";
}

FolderImages find_images(const Path& folder) {
  namespace fs = std::filesystem;
  FolderImages out;
  for (auto each = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied);
       each != fs::recursive_directory_iterator(); ++each) {
    std::error_code ignored;
    if (is_hidden(each->path())) {
      if (each->is_directory(ignored)) each.disable_recursion_pending();
    } else if (each->is_regular_file(ignored)) {
      (is_image_name(each->path()) ? out.images : out.skipped_files).push_back(each->path());
    }
  }
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
