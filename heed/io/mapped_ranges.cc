#include "heed/io/mapped_ranges.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "heed/io/temporary.h"

namespace heed {
namespace {

constexpr int kBadFileExitCode = 3;  // FileError's

struct MappedRange {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0}, end{0};  // end is 0 if nothing is mapped
  std::atomic<const char*> name{nullptr};
};

// Fixed size and lock-free, because a signal handler reads it.
std::array<MappedRange, 1024> mapped_ranges;

// write(2) is async-signal-safe.
void write_error(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

void on_bus_error(int number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const MappedRange& range : mapped_ranges) {
    const uintptr_t end = range.end.load(std::memory_order_acquire);
    if (end == 0 || address < range.begin.load(std::memory_order_relaxed) || address >= end) continue;
    write_error("heed: ");
    write_error(range.name.load(std::memory_order_relaxed));
    write_error(": was truncated or could not be read while heed was reading it; restore the file and run heed again\n");
    unlink_temporaries();
    ::_exit(kBadFileExitCode);
  }
  ::signal(number, SIG_DFL);  // not ours: the fault repeats with the default action
}

}  // namespace

int register_mapping(const std::byte* data, size_t bytes, const char* name) {
  for (size_t i = 0; i < mapped_ranges.size(); ++i) {
    MappedRange& range = mapped_ranges[i];
    if (range.taken.exchange(true)) continue;
    const auto begin = reinterpret_cast<uintptr_t>(data);
    range.name = name;
    range.begin = begin;
    range.end.store(begin + bytes, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;  // table full: no message for this file
}

void unregister_mapping(int handle) {
  if (handle < 0) return;
  MappedRange& range = mapped_ranges[static_cast<size_t>(handle)];
  range.end = 0;
  range.taken = false;
}

void exit_on_truncated_mapping() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace heed
