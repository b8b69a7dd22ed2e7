// Another library in a separate process, with a line protocol over pipes (peers.py serves PyTorch, as_peer.cc another build of heed):
//   threads N      -> description                   open NAME -> ok, or an error message
//   round SECONDS  -> seconds of one call           close     -> ok
//   memory NAME    -> peak bytes, measured in a separate process
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace heed::bench {

class Peer {
 public:
  Peer(const std::string& command, int threads);  // command: run by the shell
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& description() const { return description_; }
  bool open(const std::string& name);  // false, with a message on stderr, if it has no such benchmark
  double round(double duration);
  std::optional<double> memory(const std::string& name);  // empty, with a message on stderr, if it cannot be measured
  void close();

 private:
  std::string request(const std::string& line);

  pid_t process_ = 0;
  FILE *to_ = nullptr, *from_ = nullptr;
  std::string description_;
};

// Reads requests of a Peer from standard input and writes answers to standard output, until the input ends.
void serve_as_peer(std::vector<Benchmark> benchmarks);

}  // namespace heed::bench
