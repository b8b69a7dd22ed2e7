#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>
#include <string_view>

#include "heed/cli/run.h"
#include "heed/core/isa.h"
#include "heed/cuda/runtime.h"
#include "heed/dist/group.h"

namespace heed::cli {
namespace {

// The commands that split their work.
constexpr std::array<std::string_view, 6> kSplitCommands{"embed", "eval", "predict", "tokenize", "train", "translate"};

// Takes everything and prints nothing.
class NoOutput : public std::streambuf {
 protected:
  int overflow(int letter) override { return traits_type::not_eof(letter); }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

// Writes whole lines at once. mpirun forwards what each write() gives, so what other streams give at the same time would stand between the
// pieces of a line.
class WholeLines : public std::streambuf {
 public:
  explicit WholeLines(int file) : file_(file) {}

 protected:
  int overflow(int letter) override {
    if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
    const char byte = traits_type::to_char_type(letter);
    return xsputn(&byte, 1) == 1 ? letter : traits_type::eof();
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    constexpr size_t most = 1 << 16;  // of output without lines
    const std::lock_guard lock(mutex_);
    text_.append(bytes, static_cast<size_t>(count));
    const size_t end = text_.size() < most ? text_.rfind('\n') + 1 : text_.size();  // npos + 1 is 0
    return write_first(end) ? count : 0;
  }
  int sync() override {
    const std::lock_guard lock(mutex_);
    return write_first(text_.size()) ? 0 : -1;
  }

 private:
  // Drops what cannot be written: the stream is bad from then on.
  bool write_first(size_t count) {
    size_t done = 0;
    while (done < count) {
      const ssize_t written = ::write(file_, text_.data() + done, count - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      done += static_cast<size_t>(written);
    }
    text_.erase(0, count);
    return done == count;
  }

  const int file_;
  std::mutex mutex_;
  std::string text_ = {};  // not written yet
};

// Output of the first process is printed, that of the others is dropped. The buffers are never destroyed: streams are flushed at the very
// end.
void choose_output() {
  std::ios::sync_with_stdio(false);  // a later call would put the buffers of the C library back
  std::cerr << std::nounitbuf;       // else every piece of a line is written on its own
  if (world().is_first()) {
    std::cout.rdbuf(new WholeLines(STDOUT_FILENO));
    std::cerr.rdbuf(new WholeLines(STDERR_FILENO));
  } else {
    for (std::ostream* const stream : {&std::cout, &std::cerr}) stream->rdbuf(new NoOutput);
  }
}

// Also from a process whose output is dropped.
void print_to_standard_error(const std::string& message) {
  if (world().is_first()) return print_error(message);
  const std::string line = "heed: " + message + '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

// Throws where processes cannot work together. Different instruction sets round differently, so weights would drift apart.
void check_processes() {
  apply_instruction_set();
  check_same(world(), "heed", HEED_VERSION);
  check_same(world(), "the instruction set", instruction_set());
}

// Each process of a machine takes a GPU of its own, as far as there are enough.
void choose_device() {
  const char* const set = std::getenv("HEED_DEVICE");
  const std::string_view wanted = set == nullptr ? "" : set;
  const int count = cuda::device_count();
  if (count > 1 && (wanted.empty() || wanted == "auto" || wanted == "cuda"))
    ::setenv("HEED_DEVICE", ("cuda:" + std::to_string(world().local_rank() % count)).c_str(), 1);
}

}  // namespace

int run_in_processes(int argc, const char* const* argv) {
  if (launched_processes() <= 1) return run(argc, argv);
  RunResult result{0};
  try {
    start_processes();
    check_processes();
    choose_device();
    ::setenv("NO_COLOR", "1", 0);  // mpirun gives its processes a terminal, whatever its own output is
    choose_output();
    const bool splits = argc > 1 && std::find(kSplitCommands.begin(), kSplitCommands.end(), argv[1]) != kSplitCommands.end();
    if (splits) {
      result = run_without_message(argc, argv);
    } else if (world().is_first()) {
      const WithoutOthers alone;
      result = run_without_message(argc, argv);
    }
  } catch (const Error& error) {
    result = {error.exit_code(), error.what()};
  }
  return end_processes(result.exit_code, result.error, print_to_standard_error);
}

}  // namespace heed::cli
