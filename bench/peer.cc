// A child process and two pipes.
#include "bench/peer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "heed/core/check.h"

extern char** environ;

namespace heed::bench {
namespace {

std::optional<double> number_in(const std::string& answer) {
  char* end = nullptr;
  const double number = std::strtod(answer.c_str(), &end);
  if (end == answer.c_str() || *end != '\0' || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

Peer::Peer(const std::string& command, int threads) {
  int down[2], up[2];  // read end, write end
  check(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0, "peer: cannot create pipes");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  std::string shell = "sh", option = "-c", text = "exec " + command;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int failed = posix_spawn(&process_, "/bin/sh", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(down[0]);
  ::close(up[1]);
  to_ = fdopen(down[1], "w");
  from_ = fdopen(up[0], "r");
  check(failed == 0 && to_ && from_, "peer: '", command, "' does not start");
  std::signal(SIGPIPE, SIG_IGN);  // a dead peer gives an error message instead of ending this process
  description_ = request("threads " + std::to_string(threads));
}

Peer::~Peer() {
  if (to_) std::fclose(to_);  // the peer exits at the end of its input
  if (from_) std::fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::string Peer::request(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  std::string answer;
  for (int letter = std::fgetc(from_); letter != '\n'; letter = std::fgetc(from_)) {
    check(letter != EOF, "peer: exited during '", line, "'");
    answer += static_cast<char>(letter);
  }
  return answer;
}

bool Peer::open(const std::string& name) {
  const std::string answer = request("open " + name);
  if (answer == "ok") return true;
  std::cerr << "peer: " << answer << '\n';
  return false;
}

double Peer::round(double duration) {
  const std::string answer = request("round " + std::to_string(duration));
  const std::optional<double> seconds = number_in(answer);
  check(seconds.has_value(), "peer: answered '", answer, "', expected seconds");
  return *seconds;
}

std::optional<double> Peer::memory(const std::string& name) {
  const std::string answer = request("memory " + name);
  const std::optional<double> bytes = number_in(answer);
  if (!bytes) std::cerr << "peer: " << answer << '\n';
  return bytes;
}

void Peer::close() { request("close"); }

}  // namespace heed::bench
