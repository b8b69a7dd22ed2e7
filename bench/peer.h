// Another library in a process of its own, asked line by line over pipes (peers.py answers for PyTorch):
//   threads N      -> what it is, in words          open NAME -> ok, or why not
//   round SECONDS  -> seconds of one call           close     -> ok
//   memory NAME    -> bytes at most, of a process of its own
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>

namespace heed::bench {

class Peer {
 public:
  Peer(const std::string& command, int threads);  // run by the shell
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& description() const { return description_; }
  bool open(const std::string& name);  // false, with a word on stderr, when it has no such benchmark
  double round(double duration);
  std::optional<double> memory(const std::string& name);  // none, with a word on stderr, when it cannot tell
  void close();

 private:
  std::string ask(const std::string& line);

  pid_t process_ = 0;
  FILE *to_ = nullptr, *from_ = nullptr;
  std::string description_;
};

}  // namespace heed::bench
