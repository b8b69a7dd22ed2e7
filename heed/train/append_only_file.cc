#include "heed/train/append_only_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace heed {

AppendOnlyFile::AppendOnlyFile(Path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with("cannot be opened", errno);
}

AppendOnlyFile::~AppendOnlyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AppendOnlyFile::fail_with(const char* what, int error) const {
  fail<WriteError>(path_.string(), ": ", what, " (", std::generic_category().message(error),
                   "); its previous content is unchanged: check the disk space and the permissions of the folder");
}

int64_t AppendOnlyFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_with("cannot get its size", errno);
  return status.st_size;
}

void AppendOnlyFile::append(std::string_view bytes) {
  const int64_t before = size();
  while (!bytes.empty()) {
    const ssize_t got = ::write(descriptor_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      (void)!::ftruncate(descriptor_, before);  // remove the partial record
      fail_with("cannot be appended to", error);
    }
    bytes.remove_prefix(static_cast<size_t>(got));
  }
}

void AppendOnlyFile::sync() {
  if (::fsync(descriptor_) != 0) fail_with("cannot be synced to disk", errno);
}

void AppendOnlyFile::truncate_to(int64_t bytes) {
  if (bytes < size() && ::ftruncate(descriptor_, bytes) != 0) fail_with("cannot be truncated", errno);
}

std::string AppendOnlyFile::first_line() const {
  std::string out;
  std::array<char, 4096> block{};
  while (std::ssize(out) < size()) {  // bounded, as a device may never end
    const ssize_t got = ::pread(descriptor_, block.data(), block.size(), static_cast<off_t>(out.size()));
    if (got < 0) fail_with("cannot be read", errno);
    out.append(block.data(), static_cast<size_t>(got));
    const size_t end = out.find('\n', out.size() - static_cast<size_t>(got));
    if (end != std::string::npos) return out.substr(0, end);
    if (got == 0) break;
  }
  return out;
}

void AppendOnlyFile::drop_partial_line() {
  std::array<char, 4096> block{};
  int64_t end = size();
  while (end > 0) {
    const int64_t begin = std::max<int64_t>(0, end - static_cast<int64_t>(block.size()));
    const ssize_t got = ::pread(descriptor_, block.data(), static_cast<size_t>(end - begin), begin);
    if (got != end - begin) fail_with("cannot be read", got < 0 ? errno : EIO);
    const size_t line_end = std::string_view(block.data(), static_cast<size_t>(got)).rfind('\n');
    if (line_end != std::string_view::npos) {
      end = begin + static_cast<int64_t>(line_end) + 1;
      break;
    }
    end = begin;
  }
  truncate_to(end);
}

void sync_folder(const Path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace heed
