// Notices processes that are lost or hang. A thread sends a sign of life to the next process every second and waits for those of the
// previous one; a program that only waits for data could not tell a slow process from one that is gone.
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
