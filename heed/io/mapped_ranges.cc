#include "heed/io/mapped_ranges.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace heed {
namespace {

constexpr int kBadFileExitCode = 3;  // that of FileError

struct MappedRange {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0}, end{0};  // end is 0 where nothing is mapped
  std::atomic<const char*> name{nullptr};
};

// Fixed and without locks: a signal handler reads it.
std::array<MappedRange, 1024> mapped_ranges;

// write(2) is one of the few calls that a signal handler may make.
void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

void on_bus_error(int number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const MappedRange& range : mapped_ranges) {
    const uintptr_t end = range.end.load(std::memory_order_acquire);
    if (end == 0 || address < range.begin.load(std::memory_order_relaxed) || address >= end) continue;
    say("heed: ");
    say(range.name.load(std::memory_order_relaxed));
    say(": was cut short or could not be read while heed was reading it; make the file whole and run heed again\n");
    ::_exit(kBadFileExitCode);
  }
  ::signal(number, SIG_DFL);  // not ours: the fault comes again and ends the process as it would have
}

}  // namespace

int remember_mapping(const std::byte* data, size_t bytes, const char* name) {
  for (size_t i = 0; i < mapped_ranges.size(); ++i) {
    MappedRange& range = mapped_ranges[i];
    if (range.taken.exchange(true)) continue;
    const auto begin = reinterpret_cast<uintptr_t>(data);
    range.name = name;
    range.begin = begin;
    range.end.store(begin + bytes, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;  // more files than anybody maps: without a message for this one
}

void forget_mapping(int place) {
  if (place < 0) return;
  MappedRange& range = mapped_ranges[static_cast<size_t>(place)];
  range.end = 0;
  range.taken = false;
}

void end_on_shortened_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace heed
