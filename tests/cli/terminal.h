// The program on a pseudo-terminal that can be resized and typed into.
#pragma once

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

namespace heed::test {

class OnTerminal {
 public:
  // environment: "NAME=VALUE" entries added to ours
  OnTerminal(const std::vector<std::string>& arguments, unsigned short columns, const std::vector<std::string>& environment = {}) {
    std::vector<char*> argv{const_cast<char*>(HEED_PROGRAM)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    process_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (process_ != 0) return;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
    ::unsetenv("NO_COLOR");
    ::setenv("TERM", "xterm", 1);
    for (const std::string& variable : environment) ::putenv(const_cast<char*>(variable.c_str()));
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~OnTerminal() {
    if (!ended_) ::kill(process_, SIGKILL);
    wait();
    hang_up();
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(terminal_, TIOCSWINSZ, &size);
  }
  void type(const std::string& keys) const { (void)!::write(terminal_, keys.data(), keys.size()); }
  void hang_up() {  // closes the window
    if (terminal_ >= 0) ::close(terminal_);
    terminal_ = -1;
  }
  const std::string& output() const { return output_; }

  // Reads until `text` occurs in the output after offset `from`. False: the program ended, or a minute passed.
  bool wait_for(const std::string& text, size_t from = 0) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (output_.find(text, from) == std::string::npos)
      if (std::chrono::steady_clock::now() > end || !read_some()) return false;
    return true;
  }
  int wait() {  // -> the exit code, or minus the number of the signal that killed it
    while (!ended_) {
      if (terminal_ >= 0) read_some();
      ended_ = ::waitpid(process_, &status_, terminal_ >= 0 ? WNOHANG : 0) == process_;
    }
    while (terminal_ >= 0 && read_some()) {
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  bool read_some() {
    pollfd waiting{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, 50) == 0) return !ended_;
    char bytes[4096];
    const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
    if (count > 0) output_.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }

  pid_t process_ = -1;
  int terminal_ = -1, status_ = 0;
  bool ended_ = false;
  std::string output_;
};

}  // namespace heed::test
