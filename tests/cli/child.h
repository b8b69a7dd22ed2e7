// The program as a child that can be watched, signalled and killed.
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
  // said: a file that takes what it prints. largest_file: bytes, beyond which writing fails as on a full disk; 0: any
  Child(const std::vector<std::string>& words, const Path& said, rlim_t largest_file = 0) {
    std::vector<char*> arguments{const_cast<char*>(HEED_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);  // whatever started the tests ignores
    const int out = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (largest_file > 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{largest_file, largest_file};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::execv(arguments[0], arguments.data());
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
    if (process_ > 0 && !over_) ::kill(process_, number);
  }
  bool ended() {
    if (!over_) over_ = ::waitpid(process_, &status_, WNOHANG) == process_;
    return over_;
  }
  int wait() {  // -> its exit code; minus the number of the signal that killed it
    if (!over_) over_ = ::waitpid(process_, &status_, 0) == process_;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  pid_t process_ = -1;
  bool over_ = false;
  int status_ = 0;
};

}  // namespace heed::test
