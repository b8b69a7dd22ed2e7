// The program on a terminal of its own, whose size can change and at whose keyboard somebody sits.
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
  // environment: "NAME=VALUE" words in addition to ours
  OnTerminal(const std::vector<std::string>& words, unsigned short columns, const std::vector<std::string>& environment = {}) {
    std::vector<char*> arguments{const_cast<char*>(HEED_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    process_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (process_ != 0) return;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
    ::unsetenv("NO_COLOR");
    ::setenv("TERM", "xterm", 1);
    for (const std::string& variable : environment) ::putenv(const_cast<char*>(variable.c_str()));
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~OnTerminal() {
    if (!over_) ::kill(process_, SIGKILL);
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
  void hang_up() {  // the window is closed
    if (terminal_ >= 0) ::close(terminal_);
    terminal_ = -1;
  }
  const std::string& shown() const { return shown_; }

  // Reads until `text` stands behind place `from` of what was shown. False: the program ended, or a minute passed.
  bool shows(const std::string& text, size_t from = 0) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (shown_.find(text, from) == std::string::npos)
      if (std::chrono::steady_clock::now() > end || !read_some()) return false;
    return true;
  }
  int wait() {  // -> its exit code; minus the number of the signal that killed it
    while (!over_) {
      if (terminal_ >= 0) read_some();
      over_ = ::waitpid(process_, &status_, terminal_ >= 0 ? WNOHANG : 0) == process_;
    }
    while (terminal_ >= 0 && read_some()) {
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  bool read_some() {
    pollfd waiting{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, 50) == 0) return !over_;
    char bytes[4096];
    const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
    if (count > 0) shown_.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }

  pid_t process_ = -1;
  int terminal_ = -1, status_ = 0;
  bool over_ = false;
  std::string shown_;
};

}  // namespace heed::test
