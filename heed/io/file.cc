#include "heed/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "heed/io/mapped_ranges.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/io/temporary.h"

namespace heed {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

// Opens a regular file for reading and returns its size.
int64_t open_file(const Path& path, Descriptor& file) {
  // O_NONBLOCK: a pipe without a writer is refused below instead of blocking.
  file.number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  check<FileError>(file.number >= 0 || error != ENOENT, path.string(), ": there is no such file; check the path");
  check<FileError>(file.number >= 0 || is_system_failure({error, std::generic_category()}), path.string(), ": cannot be opened (",
                   reason(error), "); check the path and its permissions");
  check(file.number >= 0, path.string(), ": cannot be opened (", reason(error), ")");
  struct stat status {};
  check(::fstat(file.number, &status) == 0, path.string(), ": cannot be examined (", reason(errno), ")");
  check<FileError>(!S_ISDIR(status.st_mode), path.string(), ": found a folder, expected a file; name a file in it");
  check<FileError>(S_ISREG(status.st_mode), path.string(),
                   ": found a device or a pipe, expected a file; save its contents to a file first");
  return status.st_size;
}

// A new file next to the target: rename is atomic only within a file system.
int open_temporary(const Path& target, Path& temporary) {
  static std::atomic<int> counter{0};
  const Path folder = target.has_parent_path() ? target.parent_path() : Path(".");
  for (;;) {
    temporary = folder / (".heed-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp");
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const int error = errno;
    if (descriptor >= 0) return descriptor;
    check<WriteError>(error == EEXIST, target.string(), ": cannot be written in ", folder.string(), " (", reason(error),
                      "); the folder must exist and be writable");
  }
}

// The file to which a path leads through links. It need not exist.
Path link_target(const Path& path) {
  constexpr int most_links = 40;  // as in Linux
  std::error_code error;
  Path out = path;
  for (int links = 0; std::filesystem::is_symlink(out, error); ++links) {
    check<WriteError>(links < most_links, path.string(), ": cannot be written (", reason(ELOOP), "); choose another name");
    out = out.parent_path() / std::filesystem::read_symlink(out, error);
  }
  return out;
}

// Names of the temporary files being written, usually at most one. Names that do not fit are not registered.
std::array<std::atomic<const char*>, 64> temporary_names{};

void register_temporary(const char* name) {
  for (std::atomic<const char*>& slot : temporary_names)
    if (const char* none = nullptr; slot.compare_exchange_strong(none, name)) return;
}

void unregister_temporary(const char* name) {
  for (std::atomic<const char*>& slot : temporary_names)
    if (const char* expected = name; slot.compare_exchange_strong(expected, nullptr)) return;
}

}  // namespace

std::string in_quotes(std::string_view text, size_t longest) {
  const bool cut = text.size() > longest;
  size_t end = cut ? longest : text.size();
  constexpr size_t most = 3;  // bytes of a character after its first one
  for (size_t i = 0; cut && i < most && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; ++i) --end;
  return '"' + printable(text.substr(0, end)) + (cut ? "...\"" : "\"");
}

std::shared_ptr<const MappedFile> MappedFile::open(const Path& path) {
  Descriptor file;
  const int64_t size = open_file(path, file);
  std::shared_ptr<MappedFile> out(new MappedFile(path.string()));
  if (size == 0) return out;
  // MAP_NORESERVE: files larger than memory can be mapped, because pages are rarely written.
  void* data = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.number, 0);
  check(data != MAP_FAILED, path.string(), ": ", size, " bytes cannot be mapped into memory (", reason(errno), ")");
  out->data_ = static_cast<std::byte*>(data);
  out->size_ = size;
  out->mapping_ = register_mapping(out->data_, static_cast<size_t>(size), out->name_.c_str());
  return out;
}

std::shared_ptr<const MappedFile> MappedFile::in_memory(std::string name, std::span<const std::byte> bytes) {
  std::shared_ptr<MappedFile> out(new MappedFile(std::move(name)));
  out->copy_.reset(new std::byte[bytes.size()]);
  if (!bytes.empty()) std::memcpy(out->copy_.get(), bytes.data(), bytes.size());
  out->data_ = out->copy_.get();
  out->size_ = static_cast<int64_t>(bytes.size());
  return out;
}

MappedFile::~MappedFile() {
  unregister_mapping(mapping_);
  if (data_ && !copy_) ::munmap(data_, static_cast<size_t>(size_));
}

std::string_view MappedFile::text(int64_t begin, int64_t bytes) const {
  check<FileError>(0 <= begin && begin <= size_ && 0 <= bytes && bytes <= size_ - begin, name_, ": ", bytes, " bytes wanted at byte ",
                   begin, ", the file has ", size_);
  return {reinterpret_cast<const char*>(data_) + begin, static_cast<size_t>(bytes)};
}

void MappedFile::release(int64_t begin, int64_t bytes) const {
  if (copy_) return;
  const auto page = int64_t{::sysconf(_SC_PAGESIZE)};
  const int64_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  if (first < last) ::madvise(data_ + first, static_cast<size_t>(last - first), MADV_DONTNEED);  // failure only costs memory
}

void remove_quietly(const Path& path) noexcept {
  try {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  } catch (const std::bad_alloc&) {
    // The file stays.
  }
}

std::string read_text(const Path& path, int64_t limit) {
  Descriptor file;
  const int64_t size = open_file(path, file);
  check<FileError>(size <= limit, path.string(), ": found ", size, " bytes, expected at most ", limit, "; is this the right file?");
  std::string text(static_cast<size_t>(size) + 1, '\0');  // the last byte is for the read that finds the end: growing would copy the text
  size_t filled = 0;
  for (;;) {  // until end of file: files in /proc report size 0
    if (filled == text.size()) text.resize(text.size() + 4096);
    const ssize_t got = ::read(file.number, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    check(got >= 0, path.string(), ": cannot be read (", reason(errno), ")");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    check<FileError>(static_cast<int64_t>(filled) <= limit, path.string(), ": found more than ", limit,
                     " bytes, expected at most that many; ", "is this the right file?");
  }
  text.resize(filled);
  return text;
}

FileWriter::FileWriter(const Path& path) : target_(link_target(path)) {  // a link stays a link
  struct stat old {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  check<WriteError>(!replaces || S_ISREG(old.st_mode), path.string(), ": found a folder, a device or a pipe, expected a file or nothing; ",
                    "choose another name");
  descriptor_ = open_temporary(target_, temporary_);
  register_temporary(temporary_.c_str());
  if (replaces) (void)!::fchmod(descriptor_, old.st_mode & 07777);  // a private file stays private
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!committed_) ::unlink(temporary_.c_str());
  unregister_temporary(temporary_.c_str());
}

void unlink_temporaries() noexcept {
  for (const std::atomic<const char*>& slot : temporary_names)
    if (const char* name = slot.load()) ::unlink(name);
}

void FileWriter::give_up(const char* what, int error) const {
  fail<WriteError>(target_.string(), ": ", what, " after ", written_, " bytes (", reason(error),
                   "); nothing was changed: free some space or choose another location");
}

void FileWriter::write(std::span<const std::byte> bytes) {
  check(descriptor_ >= 0, "file writer: ", target_.string(), " is finished already");
  while (!bytes.empty()) {
    const ssize_t got = ::write(descriptor_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) give_up("writing failed", errno);
    bytes = bytes.subspan(static_cast<size_t>(got));
    written_ += got;
  }
}

void FileWriter::finish() {
  if (descriptor_ < 0) return;
  if (::fsync(descriptor_) != 0) give_up("writing failed", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) give_up("writing failed", errno);
}

void FileWriter::commit() {
  finish();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) give_up("renaming the written file failed", errno);
  committed_ = true;
  // Flush the directory entry too. Failure is ignored: some file systems do not support it, and the file is already in place.
  const Descriptor folder{::open(target_.has_parent_path() ? target_.parent_path().c_str() : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.number >= 0) ::fsync(folder.number);
}

void write_text(const Path& path, std::string_view text) {
  FileWriter out(path);
  out.write(text);
  out.commit();
}

}  // namespace heed
