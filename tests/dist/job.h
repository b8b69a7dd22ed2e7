// The program in several processes, started by mpirun, that can be observed, signalled and killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "tests/io/files.h"

namespace heed::test {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct JobOptions {
  Arguments others = {};                                            // mpirun's arguments for more programs, after those of the first
  Path directory = ".";                                             // where the first one runs
  Path input = "/dev/null";                                         // its standard input
  Path errors = {};                                                 // a file for standard error; empty: that of the output
  std::vector<std::pair<std::string, std::string>> variables = {};  // of the environment
};

class Job {
 public:
  // processes: 0 starts the program itself, without mpirun
  Job(int processes, const Arguments& arguments, const Path& output, const JobOptions& options = {}) : output_(output) {
    Arguments all{HEED_PROGRAM};
    if (processes > 0) all = {"mpirun", "--oversubscribe", "-n", std::to_string(processes), HEED_PROGRAM};
    all = all + arguments + options.others;
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
    for (const char* variable : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "HEED_THREADS"}) ::setenv(variable, "1", 1);
    for (const auto& [name, value] : options.variables) ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // MPI keeps some memory
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), in = ::open(options.input.c_str(), O_RDONLY);
    ::dup2(in, STDIN_FILENO);
    const int err = options.errors.empty() ? out : ::open(options.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    if (::chdir(options.directory.c_str()) != 0) ::_exit(126);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ~Job() {
    if (!ended()) {
      send(SIGTERM);
      wait();
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void send(int number) const { ::kill(process_, number); }
  bool ended() {
    if (!ended_) ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  int wait() {  // -> the exit code, or minus the number of the signal that killed it
    if (!ended_) ended_ = ::waitpid(process_, &status_, 0) == process_;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
  // Returns whether it became true before the job ended.
  bool wait_until(const std::function<bool()>& ready) {
    while (!ended()) {
      if (ready()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  std::string output() const { return get(output_); }

  // The process of a rank; 0 if there is none.
  pid_t process_of(int rank) const {
    const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      const std::string stat = get(entry.path() / "stat"), environment = '\0' + get(entry.path() / "environ");
      const size_t end = stat.rfind(')');  // "12 (name) S 11 ..."
      if (end == stat.npos || std::atoi(stat.c_str() + std::min(end + 4, stat.size())) != process_) continue;
      if (environment.find('\0' + variable + '\0') != environment.npos) return std::atoi(name.c_str());
    }
    return 0;
  }

 private:
  const Path output_;
  pid_t process_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

// Whether several processes can be started: mpirun is there, and heed was built with MPI.
inline bool has_processes() {
  static const bool found = [] {
    const Folder folder;
    Job job(2, {"--version"}, folder / "out");
    return job.wait() == 0;
  }();
  return found && !kSanitized;  // the sanitizers report many problems inside MPI
}

}  // namespace heed::test
