// File system calls.
#include "tests/faults/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

using namespace heed_faults;

namespace {

constexpr int kDescriptors = 1024;
std::atomic<bool> ours[kDescriptors];  // whether a descriptor is a file below the root

bool is_ours(int descriptor) { return descriptor >= 0 && descriptor < kDescriptors && ours[descriptor].load(std::memory_order_relaxed); }
bool counts_at(int folder, const char* path) { return path && path[0] != '/' ? is_ours(folder) : below_root(path); }
int track(int descriptor, bool job) {
  if (descriptor >= 0 && descriptor < kDescriptors) ours[descriptor] = job;
  return descriptor;
}

}  // namespace

extern "C" {

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  const bool job = counts_at(folder, path);
  if (job && fails(kOpen, flags & O_CREAT ? ENOSPC : EIO)) return -1;
  static auto* const real = next<int(int, const char*, int, ...)>("openat");
  return track(real(folder, path, flags, mode), job);
}
static mode_t mode_of(int flags, va_list& more) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; }
#define HEED_OPEN(name)                          \
  int name(const char* path, int flags, ...) {   \
    va_list more;                                \
    va_start(more, flags);                       \
    const mode_t mode = mode_of(flags, more);    \
    va_end(more);                                \
    return open_at(AT_FDCWD, path, flags, mode); \
  }
#define HEED_OPENAT(name)                                  \
  int name(int folder, const char* path, int flags, ...) { \
    va_list more;                                          \
    va_start(more, flags);                                 \
    const mode_t mode = mode_of(flags, more);              \
    va_end(more);                                          \
    return open_at(folder, path, flags, mode);             \
  }
HEED_OPEN(open)
HEED_OPEN(open64)
HEED_OPENAT(openat)
HEED_OPENAT(openat64)

static FILE* open_stream(const char* path, const char* mode) {
  const bool job = below_root(path);
  if (job && fails(kOpen, mode[0] == 'r' ? EIO : ENOSPC)) return nullptr;
  static auto* const real = next<FILE*(const char*, const char*)>("fopen64");
  FILE* const file = real(path, mode);
  if (file) track(fileno(file), job);
  return file;
}
FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_stream(path, mode); }

DIR* opendir(const char* path) {
  const bool job = below_root(path);
  if (job && fails(kOpen, EIO)) return nullptr;
  static auto* const real = next<DIR*(const char*)>("opendir");
  DIR* const folder = real(path);
  if (folder) track(dirfd(folder), job);
  return folder;
}
dirent* readdir(DIR* folder) {
  if (is_ours(dirfd(folder)) && fails(kList, EIO)) return nullptr;
  static auto* const real = next<dirent*(DIR*)>("readdir");
  return real(folder);
}
dirent64* readdir64(DIR* folder) {
  if (is_ours(dirfd(folder)) && fails(kList, EIO)) return nullptr;
  static auto* const real = next<dirent64*(DIR*)>("readdir64");
  return real(folder);
}
int closedir(DIR* folder) {
  track(dirfd(folder), false);
  static auto* const real = next<int(DIR*)>("closedir");
  return real(folder);
}
int close(int descriptor) {
  const bool failed = is_ours(descriptor) && fails(kClose);
  track(descriptor, false);
  static auto* const real = next<int(int)>("close");
  const int out = real(descriptor);  // Linux closes the descriptor in any case
  if (failed) errno = EIO;
  return failed ? -1 : out;
}

#define HEED_READ(name, parameters, arguments)                 \
  ssize_t name parameters {                                    \
    if (is_ours(file) && fails(kRead, EIO)) return -1;         \
    static auto* const real = next<ssize_t parameters>(#name); \
    return real arguments;                                     \
  }
HEED_READ(read, (int file, void* to, size_t size), (file, to, size))
HEED_READ(pread, (int file, void* to, size_t size, off_t at), (file, to, size, at))
HEED_READ(pread64, (int file, void* to, size_t size, off64_t at), (file, to, size, at))

// A disk that fills up accepts part of the data first: the call before the failing one writes half.
#define HEED_WRITE(name, parameters, arguments)                \
  ssize_t name parameters {                                    \
    static auto* const real = next<ssize_t parameters>(#name); \
    if (!is_ours(file)) return real arguments;                 \
    if (fails(kWrite, ENOSPC)) return -1;                      \
    if (is_next(kWrite) && size > 1) size /= 2;                \
    return real arguments;                                     \
  }
HEED_WRITE(write, (int file, const void* from, size_t size), (file, from, size))
HEED_WRITE(pwrite, (int file, const void* from, size_t size, off_t at), (file, from, size, at))
HEED_WRITE(pwrite64, (int file, const void* from, size_t size, off64_t at), (file, from, size, at))

int fsync(int file) {
  if (is_ours(file) && fails(kSync, EIO)) return -1;
  static auto* const real = next<int(int)>("fsync");
  return real(file);
}
#define HEED_TRUNCATE(name, offset)                          \
  int name(int file, offset size) {                          \
    if (is_ours(file) && fails(kTruncate, EIO)) return -1;   \
    static auto* const real = next<int(int, offset)>(#name); \
    return real(file, size);                                 \
  }
HEED_TRUNCATE(ftruncate, off_t)
HEED_TRUNCATE(ftruncate64, off64_t)

int rename(const char* from, const char* to) {
  if (below_root(to) && fails(kRename, EIO)) return -1;
  static auto* const real = next<int(const char*, const char*)>("rename");
  return real(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (counts_at(to_folder, to) && fails(kRename, EINVAL)) return -1;  // the error of file systems without exchange
  static auto* const real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return real(from_folder, from, to_folder, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  if (below_root(path) && fails(kMakeFolder, ENOSPC)) return -1;
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return real(path, mode);
}
int unlink(const char* path) {
  if (below_root(path) && fails(kUnlink, EIO)) return -1;
  static auto* const real = next<int(const char*)>("unlink");
  return real(path);
}
int remove(const char* path) {
  if (below_root(path) && fails(kUnlink, EIO)) return -1;
  static auto* const real = next<int(const char*)>("remove");
  return real(path);
}
int unlinkat(int folder, const char* path, int flags) {
  if (counts_at(folder, path) && fails(kUnlink, EIO)) return -1;
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  return real(folder, path, flags);
}

#define HEED_STAT(name, type)                                       \
  int name(const char* path, type* out) {                           \
    if (below_root(path) && fails(kStat, EIO)) return -1;           \
    static auto* const real = next<int(const char*, type*)>(#name); \
    return real(path, out);                                         \
  }
#define HEED_FSTAT(name, type)                              \
  int name(int file, type* out) {                           \
    if (is_ours(file) && fails(kStat, EIO)) return -1;      \
    static auto* const real = next<int(int, type*)>(#name); \
    return real(file, out);                                 \
  }
HEED_STAT(stat, struct stat)
HEED_STAT(lstat, struct stat)
HEED_STAT(stat64, struct stat64)
HEED_STAT(lstat64, struct stat64)
HEED_FSTAT(fstat, struct stat)
HEED_FSTAT(fstat64, struct stat64)

}  // extern "C"
