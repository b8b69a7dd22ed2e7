#include "heed/train/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace heed {

GrowingFile::GrowingFile(Path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) give_up("cannot be opened", errno);
}

GrowingFile::~GrowingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void GrowingFile::give_up(const char* what, int error) const {
  fail<WriteError>(path_.string(), ": ", what, " (", std::generic_category().message(error),
                   "); what it held before is untouched: free some space or see to the folder");
}

int64_t GrowingFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) give_up("cannot be examined", errno);
  return status.st_size;
}

void GrowingFile::append(std::string_view bytes) {
  const int64_t before = size();
  while (!bytes.empty()) {
    const ssize_t got = ::write(descriptor_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      (void)!::ftruncate(descriptor_, before);  // a half line would be taken for a whole one
      give_up("cannot be added to", error);
    }
    bytes.remove_prefix(static_cast<size_t>(got));
  }
}

void GrowingFile::sync() {
  if (::fsync(descriptor_) != 0) give_up("cannot be brought to the disk", errno);
}

void GrowingFile::cut_to(int64_t bytes) {
  if (bytes < size() && ::ftruncate(descriptor_, bytes) != 0) give_up("cannot be cut back", errno);
}

std::string GrowingFile::first_line() const {
  std::string out;
  std::array<char, 4096> block{};
  while (std::ssize(out) < size()) {  // a device may give bytes without end
    const ssize_t got = ::pread(descriptor_, block.data(), block.size(), static_cast<off_t>(out.size()));
    if (got < 0) give_up("cannot be read", errno);
    out.append(block.data(), static_cast<size_t>(got));
    const size_t end = out.find('\n', out.size() - static_cast<size_t>(got));
    if (end != std::string::npos) return out.substr(0, end);
    if (got == 0) break;
  }
  return out;
}

void GrowingFile::cut_half_line() {
  std::array<char, 4096> block{};
  int64_t end = size();
  while (end > 0) {
    const int64_t begin = std::max<int64_t>(0, end - static_cast<int64_t>(block.size()));
    const ssize_t got = ::pread(descriptor_, block.data(), static_cast<size_t>(end - begin), begin);
    if (got != end - begin) give_up("cannot be read", got < 0 ? errno : EIO);
    const size_t line_end = std::string_view(block.data(), static_cast<size_t>(got)).rfind('\n');
    if (line_end != std::string_view::npos) {
      end = begin + static_cast<int64_t>(line_end) + 1;
      break;
    }
    end = begin;
  }
  cut_to(end);
}

void sync_folder(const Path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace heed
