// A library for LD_PRELOAD that makes the n-th call of one kind fail, as a full disk, a broken one or a machine without memory would.
//
// HEED_FAULT=KIND:N       the N-th call fails, once. KIND is a name in kKinds below. N = 0: no call fails.
// HEED_FAULT=KIND:N:rest  the N-th call and all later ones fail
// HEED_FAULT_ROOT=FOLDER  only files below it count: the job's, not those of the system
// HEED_FAULT_COUNT=FILE   takes a number for every call when the program ends: calls from the same place in the program have the same one
//
// Calls count from the beginning of main. Left out is what no program can mend: libgomp, the dynamic loader and glibc's thread_local
// destructors end the process when there is no memory for them, and oneDNN 2.6 crashes where there is none for the code that it generates.
#include "tests/faults/inject.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

// glibc has these under a second name, so that dlsym, which allocates itself, need not be asked.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace heed_faults {
namespace {

constexpr const char* kKinds[] = {"none",     "open",  "read",  "write",  "fsync", "rename", "mmap",  "malloc",
                                  "truncate", "close", "mkdir", "unlink", "list",  "stat",   "thread"};

Kind failing = kNone;
long wanted = 0;
bool and_the_rest = false;
const char* root = nullptr;
size_t root_size = 0;
std::atomic<long> calls{0};
std::atomic<bool> started{false};
struct Range {
  uintptr_t begin, end;
  Kind kind;
};
constexpr int kMostRanges = 16;
Range left_out[kMostRanges];  // code whose calls do not count
int left_out_count = 0;

constexpr long kMostPlaces = 1 << 22;
uint32_t* places = nullptr;  // of each call, or null where nobody asks
thread_local bool looking = false;

// A number for the functions that called, innermost first.
uint32_t place() {
  void* frames[24];
  looking = true;  // the unwinder may allocate
  const int count = backtrace(frames, 24);
  looking = false;
  uint32_t hash = 2166136261;
  for (int i = 0; i < count; ++i) hash = (hash ^ static_cast<uint32_t>(reinterpret_cast<uintptr_t>(frames[i]))) * 16777619;
  return hash;
}

}  // namespace

bool fails(Kind kind) {
  if (kind != failing || looking || !started.load(std::memory_order_relaxed)) return false;
  const long number = calls.fetch_add(1) + 1;
  if (places && number <= kMostPlaces) places[number - 1] = place();
  return wanted > 0 && (number == wanted || (and_the_rest && number > wanted));
}
bool fails(Kind kind, int error) {
  if (!fails(kind)) return false;
  errno = error;
  return true;
}

bool is_next(Kind kind) { return kind == failing && calls.load() + 1 == wanted; }
bool below_root(const char* path) {
  return root && path && strncmp(path, root, root_size) == 0 && (path[root_size] == '/' || path[root_size] == '\0');
}

namespace {

int note_library(dl_phdr_info* info, size_t, void*) {
  const bool ends_process = strstr(info->dlpi_name, "libgomp") || strstr(info->dlpi_name, "ld-linux");
  if (!ends_process && !strstr(info->dlpi_name, "libdnnl")) return 0;
  for (int i = 0; i < info->dlpi_phnum && left_out_count + 1 < kMostRanges; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD) {
      const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      left_out[left_out_count++] = {begin, begin + info->dlpi_phdr[i].p_memsz, ends_process ? kMalloc : kMap};
    }
  return 0;
}
bool is_left_out(Kind kind, const void* caller) {
  for (int i = 0; i < left_out_count; ++i)
    if (left_out[i].kind == kind && reinterpret_cast<uintptr_t>(caller) - left_out[i].begin < left_out[i].end - left_out[i].begin)
      return true;
  return false;
}
// Whether oneDNN is among the callers.
bool inside_onednn() {
  void* frames[64];
  looking = true;
  const int count = backtrace(frames, 64);
  looking = false;
  return std::any_of(frames, frames + count, [](const void* frame) { return is_left_out(kMap, frame); });
}

bool no_memory(const void* caller) {
  return failing == kMalloc && started.load(std::memory_order_relaxed) && !is_left_out(kMalloc, caller) && fails(kMalloc, ENOMEM) &&
         !inside_onednn();
}

void write_count() {
  const long count = std::min(calls.load(), kMostPlaces);
  failing = kNone;
  if (!places) return;
  const int out = open(getenv("HEED_FAULT_COUNT"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (long i = 0; i < count; ++i) dprintf(out, "%u\n", places[i]);
  close(out);
}

void read_wishes() {
  root = getenv("HEED_FAULT_ROOT");
  root_size = root ? strlen(root) : 0;
  dl_iterate_phdr(note_library, nullptr);
  const char* wish = getenv("HEED_FAULT");
  const char* colon = wish ? strchr(wish, ':') : nullptr;
  if (!colon) return;
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i)
    if (strlen(kKinds[i]) == static_cast<size_t>(colon - wish) && strncmp(kKinds[i], wish, static_cast<size_t>(colon - wish)) == 0)
      failing = static_cast<Kind>(i);
  wanted = atol(colon + 1);
  and_the_rest = strstr(colon, ":rest") != nullptr;
  if (getenv("HEED_FAULT_COUNT")) places = static_cast<uint32_t*>(__libc_calloc(kMostPlaces, sizeof *places));
  place();  // the unwinder is loaded now, not in the middle of a call
  const auto tls = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "__cxa_thread_atexit_impl"));
  left_out[left_out_count++] = {tls, tls + 512, kMalloc};
  atexit(write_count);  // registered first, so it runs after all destructors of the program
}

int (*real_main)(int, char**, char**);
int counted_main(int argc, char** argv, char** environment) {
  started = true;
  return real_main(argc, argv, environment);
}

}  // namespace
}  // namespace heed_faults

using namespace heed_faults;

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                      void* stack_end) {
  read_wishes();
  real_main = main;
  return next<int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*)>("__libc_start_main")(
      counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

// Memory
void* malloc(size_t size) { return no_memory(__builtin_return_address(0)) ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return no_memory(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return no_memory(__builtin_return_address(0)) ? nullptr : __libc_realloc(block, size); }
void* memalign(size_t alignment, size_t size) {
  return no_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return no_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  void* const got = no_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
  if (!got) return ENOMEM;
  *block = got;
  return 0;
}

static void* map(const void* caller, void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (failing == kMap && !is_left_out(kMap, caller) && fails(kMap, ENOMEM)) return MAP_FAILED;
  static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  return real(at, size, protection, flags, file, offset);
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  return map(__builtin_return_address(0), at, size, protection, flags, file, offset);
}
void* mmap64(void* at, size_t size, int protection, int flags, int file, off64_t offset) {
  return map(__builtin_return_address(0), at, size, protection, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (fails(kThread)) return EAGAIN;
  static auto* const real = next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return real(thread, attributes, body, argument);
}

}  // extern "C"
