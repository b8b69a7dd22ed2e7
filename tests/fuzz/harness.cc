#include "tests/fuzz/harness.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>

namespace heed::fuzz {
namespace {

namespace fs = std::filesystem;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

const fs::path& folder() {
  static const struct Owner {
    fs::path path;
    Owner() {
      std::string name = fs::exists("/dev/shm") ? "/dev/shm/heed-fuzz-XXXXXX" : "/tmp/heed-fuzz-XXXXXX";
      if (!mkdtemp(name.data())) std::abort();
      path = name;
    }
    ~Owner() { fs::remove_all(path); }
  } owner;
  return owner.path;
}

void write_file(const std::string& name, std::string_view bytes) {
  std::ofstream out(folder() / name, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) std::abort();
}

void write_files(std::string_view input, std::span<const char* const> known) {
  constexpr std::string_view mark = "=== ";
  std::map<std::string, std::string> files;
  std::string* open = nullptr;
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size() - 1) + 1;
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(end);
    if (!line.starts_with(mark)) {
      if (open) open->append(line);
      continue;
    }
    std::string name(line.substr(mark.size()));
    while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
    open = std::find(known.begin(), known.end(), name) != known.end() ? &files[name] : nullptr;
  }
  for (const char* name : known) {
    const auto found = files.find(name);
    if (found != files.end()) {
      write_file(name, found->second);
    } else {
      fs::remove(folder() / name);
    }
  }
}

}  // namespace heed::fuzz

// CPU time, not wall-clock time: other programs do not count.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const double begin = heed::fuzz::thread_seconds();
  fuzz_input(data, size);
  const double seconds = heed::fuzz::thread_seconds() - begin;
  if (seconds > 1) {
    std::fprintf(stderr, "slow input: %.1f seconds for %zu bytes\n", seconds, size);
    std::abort();
  }
  return 0;
}
