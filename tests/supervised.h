// Runs the program and observes how it ends, what it prints, and its time and memory.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace heed::test {

using Words = std::vector<std::string>;

struct Supervised {
  int exit_code = 0;   // minus the number of the signal that ended it
  bool hung = false;   // it took longer than allowed and was killed
  int64_t memory = 0;  // peak resident memory in bytes
  double cpu_seconds = 0;
  std::string out, err;
};

inline std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A shell command that runs the same.
inline std::string command_line(const Words& environment, const std::string& program, const Words& words) {
  std::string out;
  const auto add = [&](const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./") == word.npos;
    std::string quoted = word;
    for (size_t at = 0; (at = quoted.find('\'', at)) != quoted.npos; at += 4) quoted.replace(at, 1, "'\\''");
    out += (out.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  };
  for (const std::string& setting : environment) add(setting);
  add(program);
  for (const std::string& word : words) add(word);
  return out;
}

// scratch: a folder for its output. Standard input is empty. `seconds`: the limit of wall-clock time.
inline Supervised supervise(const std::string& program, const Words& words, const Words& environment, const std::filesystem::path& scratch,
                            double seconds) {
  using Clock = std::chrono::steady_clock;
  const std::string out = scratch / "stdout", err = scratch / "stderr";
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Clock::time_point start = Clock::now();
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    for (const std::string& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  Supervised ran;
  int status = 0;
  rusage used{};
  const auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (::wait4(process, &status, WNOHANG, &used) == 0) {
    if (!ran.hung && since() > seconds) {
      ran.hung = true;
      ::kill(process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  const auto in_seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  ran.cpu_seconds = in_seconds(used.ru_utime) + in_seconds(used.ru_stime);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  ran.memory = int64_t{used.ru_maxrss} * 1024;
  ran.out = bytes_of_file(out);
  ran.err = bytes_of_file(err);
  return ran;
}

// What is wrong with the way the program ended, for any input; empty: nothing.
inline std::string wrong_ending(const Supervised& ran) {
  if (ran.hung) return "hung";
  if (ran.exit_code < 0) return "ended by signal " + std::to_string(-ran.exit_code);
  if (ran.exit_code > 4) return "exit code " + std::to_string(ran.exit_code);
  if (ran.err.find("heed: unexpected") != std::string::npos) return "an unexpected error";
  if (ran.exit_code == 0) return "";
  // One line of error, which indented lines may continue; notes may come before.
  size_t last = ran.err.rfind("\nheed: ");
  last = last == std::string::npos ? 0 : last + 1;
  if (ran.err.compare(last, 6, "heed: ") != 0 || !ran.err.ends_with('\n')) return "no line of error at the end";
  while ((last = ran.err.find('\n', last) + 1) < ran.err.size())
    if (ran.err.compare(last, 2, "  ") != 0) return "output after the line of error";
  return "";
}

}  // namespace heed::test
