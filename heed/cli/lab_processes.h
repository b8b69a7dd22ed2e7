// Experiments that train models, several at a time in processes of their own: models so small gain little from threads. The processes keep
// their reports in the cache, where the caller finds them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "heed/io/temporary.h"
#include "heed/lab/experiment.h"

namespace heed::cli {

struct LabJob {
  const lab::Experiment* experiment = nullptr;
  std::vector<std::string> settings = {};  // key=value, known to the experiment
};

class LabProcesses {
 public:
  // Starts as many as there are threads; the others follow in their order. Fewer than two jobs start nothing.
  explicit LabProcesses(const std::vector<LabJob>& jobs);
  ~LabProcesses();  // ends those that still run
  LabProcesses(const LabProcesses&) = delete;
  LabProcesses& operator=(const LabProcesses&) = delete;

  // Until all processes of this experiment have ended, however they did. say: is called with what runs. A StoppedError if stop() is true.
  void wait_for(const lab::Experiment& experiment, const std::function<bool()>& stop, const std::function<void(const std::string&)>& say);

 private:
  struct Process {
    LabJob job;
    pid_t id = 0;
    enum { waiting, running, ended } state = waiting;
  };

  void start(Process& process);
  void reap();  // notes which have ended
  void start_next();

  size_t at_once_ = 0;
  int threads_ = 1;  // of each
  TemporaryFolder reports_ = {};
  std::vector<Process> processes_ = {};
};

}  // namespace heed::cli
