#include "heed/io/image_files.h"

#include <algorithm>
#include <cctype>

namespace heed {
namespace {

constexpr size_t kNamesShown = 5, kLinesShown = 20;

bool is_hidden(const Path& path) { return path.filename().string().starts_with('.'); }

// How many bytes of the character at the beginning are valid UTF-8 (RFC 3629); 0: none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0, beyond = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 2) return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
  return first < ' ' || first == 127;
}

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
      (is_image_name(each->path()) ? out.images : out.passed_over).push_back(each->path());
    }
  }
  std::sort(out.images.begin(), out.images.end());
  std::sort(out.passed_over.begin(), out.passed_over.end());
  return out;
}

std::string passed_over_note(const std::vector<Path>& files) {
  if (files.empty()) return "";
  std::string out = std::to_string(files.size()) + (files.size() == 1 ? " file was" : " files were") + " passed over: ";
  for (size_t i = 0; i < std::min(files.size(), kNamesShown); ++i) out += (i > 0 ? ", " : "") + printable(files[i].string());
  if (files.size() > kNamesShown) out += " and " + std::to_string(files.size() - kNamesShown) + " more";
  return out + " (heed reads " + kReadFormats + ")";
}

std::string listed_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) out += "\n  " + printable(lines[i]);
  if (lines.size() > kLinesShown) out += "\n  and " + std::to_string(lines.size() - kLinesShown) + " more";
  return out;
}

std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length > 0 && !is_control(text.substr(0, length))) {
      out += text.substr(0, length);
    } else {
      const auto code = static_cast<unsigned char>(text[0]);
      out += {'\\', 'x', digits[code / 16], digits[code % 16]};
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace heed
