#include "heed/serve/run_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "heed/train/run_json.h"

extern char** environ;

namespace heed::serve {
namespace {

// What the process wrote, as one line.
std::string message_in(int file) {
  std::string out(4096, '\0');
  const ssize_t bytes = ::pread(file, out.data(), out.size(), 0);
  out.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  if (out.starts_with("heed: ")) out.erase(0, 6);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    // Asio's sockets are inherited: the training would keep the server's port after the server has ended.
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    // In a new session, Ctrl-C in the server's terminal does not reach it.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

void RunProcesses::start(const std::string& program, const std::vector<std::string>& arguments, const Path& run) {
  reap();
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
  argv.push_back(nullptr);
  const int output = ::memfd_create("heed train", MFD_CLOEXEC);
  check(output >= 0, "train: cannot make a file for the messages of the training: ", std::strerror(errno));
  int process = 0;
  int failed = 0;
  {
    const SpawnSettings settings(output);
    failed = ::posix_spawn(&process, program.c_str(), &settings.actions, &settings.attributes, argv.data(), environ);
  }
  constexpr int most_polls = 100;
  std::string message;
  bool ended = failed != 0, good = false;
  for (int i = 0; i < most_polls && !ended && process_of_run(run) != process; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    int status = 0;
    ended = ::waitpid(process, &status, WNOHANG) == process;
    good = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (ended && !good) message = failed != 0 ? std::strerror(failed) : message_in(output);
  ::close(output);
  check<UsageError>(!ended || good, message.empty() ? "train: the training ended at once" : message);
  if (ended) return;
  const std::lock_guard lock(mutex_);
  processes_.push_back(process);
}

void RunProcesses::reap() {
  const std::lock_guard lock(mutex_);
  std::erase_if(processes_, [](int process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
}

}  // namespace heed::serve
