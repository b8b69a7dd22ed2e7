// A library for LD_PRELOAD that makes the n-th call of one kind fail, simulating a full or broken disk or lack of memory.
//
// HEED_FAULT=KIND:N       the N-th call fails, once. KIND is a name in kKinds below. N = 0: no call fails.
// HEED_FAULT=KIND:N:rest  the N-th call and all later ones fail
// HEED_FAULT_ROOT=FOLDER  only files below it count, not those of the system
// HEED_FAULT_COUNT=FILE   receives a hash of the call stack of every call when the program ends
// Calls are counted from the start of main. Excluded are calls whose failure no program can handle: libgomp, the dynamic loader and glibc's
// thread_local destructors abort without memory, and oneDNN 2.6 crashes if it cannot allocate memory for generated code.
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

// glibc's aliases avoid dlsym, which itself allocates.
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
long failing_call = 0;
bool later_ones_too = false;
const char* root = nullptr;
size_t root_size = 0;
std::atomic<long> calls{0};
std::atomic<bool> started{false};
struct Range {
  uintptr_t begin, end;
  Kind kind;
};
constexpr int kMaxRanges = 16;
Range excluded[kMaxRanges];  // code ranges whose calls do not count
int excluded_count = 0;

constexpr long kMaxCalls = 1 << 22;
uint32_t* stacks = nullptr;  // call stack hash per call; null unless requested
thread_local bool in_backtrace = false;

// A hash of the call stack.
uint32_t stack_hash() {
  void* frames[24];
  in_backtrace = true;  // the unwinder may allocate
  const int count = backtrace(frames, 24);
  in_backtrace = false;
  uint32_t hash = 2166136261;
  for (int i = 0; i < count; ++i) hash = (hash ^ static_cast<uint32_t>(reinterpret_cast<uintptr_t>(frames[i]))) * 16777619;
  return hash;
}

}  // namespace

bool fails(Kind kind) {
  if (kind != failing || in_backtrace || !started.load(std::memory_order_relaxed)) return false;
  const long number = calls.fetch_add(1) + 1;
  if (stacks && number <= kMaxCalls) stacks[number - 1] = stack_hash();
  return failing_call > 0 && (number == failing_call || (later_ones_too && number > failing_call));
}
bool fails(Kind kind, int error) {
  if (!fails(kind)) return false;
  errno = error;
  return true;
}

bool is_next(Kind kind) { return kind == failing && calls.load() + 1 == failing_call; }
bool below_root(const char* path) {
  return root && path && strncmp(path, root, root_size) == 0 && (path[root_size] == '/' || path[root_size] == '\0');
}

namespace {

int note_library(dl_phdr_info* info, size_t, void*) {
  const bool ends_process = strstr(info->dlpi_name, "libgomp") || strstr(info->dlpi_name, "ld-linux");
  if (!ends_process && !strstr(info->dlpi_name, "libdnnl")) return 0;
  for (int i = 0; i < info->dlpi_phnum && excluded_count + 1 < kMaxRanges; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD) {
      const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      excluded[excluded_count++] = {begin, begin + info->dlpi_phdr[i].p_memsz, ends_process ? kMalloc : kMap};
    }
  return 0;
}
bool is_excluded(Kind kind, const void* caller) {
  for (int i = 0; i < excluded_count; ++i)
    if (excluded[i].kind == kind && reinterpret_cast<uintptr_t>(caller) - excluded[i].begin < excluded[i].end - excluded[i].begin)
      return true;
  return false;
}
bool inside_onednn() {
  void* frames[64];
  in_backtrace = true;
  const int count = backtrace(frames, 64);
  in_backtrace = false;
  return std::any_of(frames, frames + count, [](const void* frame) { return is_excluded(kMap, frame); });
}

bool no_memory(const void* caller) {
  return failing == kMalloc && started.load(std::memory_order_relaxed) && !is_excluded(kMalloc, caller) && fails(kMalloc, ENOMEM) &&
         !inside_onednn();
}

void write_count() {
  const long count = std::min(calls.load(), kMaxCalls);
  failing = kNone;
  if (!stacks) return;
  const int out = open(getenv("HEED_FAULT_COUNT"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (long i = 0; i < count; ++i) dprintf(out, "%u\n", stacks[i]);
  close(out);
}

void read_environment() {
  root = getenv("HEED_FAULT_ROOT");
  root_size = root ? strlen(root) : 0;
  dl_iterate_phdr(note_library, nullptr);
  const char* fault = getenv("HEED_FAULT");
  const char* colon = fault ? strchr(fault, ':') : nullptr;
  if (!colon) return;
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i)
    if (strlen(kKinds[i]) == static_cast<size_t>(colon - fault) && strncmp(kKinds[i], fault, static_cast<size_t>(colon - fault)) == 0)
      failing = static_cast<Kind>(i);
  failing_call = atol(colon + 1);
  later_ones_too = strstr(colon, ":rest") != nullptr;
  if (getenv("HEED_FAULT_COUNT")) stacks = static_cast<uint32_t*>(__libc_calloc(kMaxCalls, sizeof *stacks));
  stack_hash();  // load the unwinder now, not during a call
  const auto tls = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "__cxa_thread_atexit_impl"));
  excluded[excluded_count++] = {tls, tls + 512, kMalloc};
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
  read_environment();
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
  void* const memory = no_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *block = memory;
  return 0;
}

static void* map(const void* caller, void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (failing == kMap && !is_excluded(kMap, caller) && fails(kMap, ENOMEM)) return MAP_FAILED;
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
