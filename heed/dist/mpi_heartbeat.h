// Detects processes that are lost or hang: a thread sends a heartbeat to the next process every second and expects those of the previous
// one. Missing data alone would not distinguish a lost process from a slow one.
#pragma once

#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>

#include <atomic>
#include <thread>

#include "heed/core/api.h"
#include "heed/dist/group.h"

namespace HEED_API heed {

class Heartbeat {
 public:
  explicit Heartbeat(const Group& group);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat();

  const Group& group_;
  double limit_;  // seconds of silence: HEED_PROCESS_TIMEOUT, by default 20; 0: any
  MPI_Comm messages_ = MPI_COMM_NULL;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace heed
