// Trainings that clients start: processes of their own, which go on when the server ends.
#pragma once

#include <mutex>
#include <vector>

#include "heed/io/file.h"

namespace heed::serve {

class RunProcesses {
 public:
  // Starts `program arguments...` and returns when `run` has a config.toml, or after some seconds. A UsageError with the program's message
  // if it ends before.
  void start(const std::string& program, const std::vector<std::string>& arguments, const Path& run);
  void reap();  // takes leave of processes that have ended

 private:
  std::mutex mutex_;
  std::vector<int> processes_;
};

}  // namespace heed::serve
