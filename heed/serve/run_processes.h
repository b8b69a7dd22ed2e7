// Training runs that clients start: separate processes, which continue when the server ends.
#pragma once

#include <mutex>
#include <vector>

#include "heed/io/file.h"

namespace heed::serve {

class RunProcesses {
 public:
  // Starts `program arguments...` and returns when it has locked the folder `run`, or after some seconds. A UsageError with the program's
  // message if it fails before that.
  void start(const std::string& program, const std::vector<std::string>& arguments, const Path& run);
  void reap();  // collects the exit codes of processes that have ended

 private:
  std::mutex mutex_;
  std::vector<int> processes_;
};

}  // namespace heed::serve
