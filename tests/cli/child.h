// The program as a child process that can be observed, signalled and killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "heed/io/file.h"

namespace heed::test {

class Child {
 public:
  // output: a file for its output. largest_file: bytes after which writing fails as on a full disk; 0: no limit
  Child(const std::vector<std::string>& arguments, const Path& output, rlim_t largest_file = 0) {
    std::vector<char*> argv{const_cast<char*>(HEED_PROGRAM)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);  // the parent may ignore them
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (largest_file > 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{largest_file, largest_file};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Child() {
    send(SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  void send(int number) const {
    if (process_ > 0 && !ended_) ::kill(process_, number);
  }
  bool ended() {
    if (!ended_) ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  int wait() {  // -> the exit code, or minus the number of the signal that killed it
    if (!ended_) ended_ = ::waitpid(process_, &status_, 0) == process_;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  pid_t process_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace heed::test
