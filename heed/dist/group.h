// The processes of one job: who they are and how they exchange data. Every process calls the same functions in the same order. Without
// mpirun or the like there is one process, and all of this does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {
namespace cuda {
class NcclGroup;
}

// The processes of a job, in one of them.
class Group {
 public:
  virtual ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // The number of this process, from 0, and how many there are.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank_ == 0; }  // writes files and output
  // The machine of a process, and how many machines there are.
  const std::string& host(int rank) const { return hosts_[static_cast<size_t>(rank)]; }
  int host_count() const;
  std::string name_of(int rank) const;  // "rank 2 on node7"
  int local_rank() const;               // the number of this process among those of its machine

  // From now on tensors on this device are exchanged between GPUs by NCCL, if it is installed and each process has another GPU. Else they
  // pass through host memory.
  void connect(Device device);
  bool connects(Device device) const;

  // The same processes for one more thread, whose messages are separate. Null: there is one process, or MPI allows no threads.
  virtual Group* background() { return nullptr; }

  virtual void barrier() = 0;  // waits for all processes
  // All processes get the bytes of process `root`.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // all: the bytes of process 0, of process 1, ...; sizes: of each
  virtual void all_gather(std::span<const std::byte> own, std::span<std::byte> all, std::span<const int64_t> sizes) = 0;
  // Process p receives what every process has for it. send, receive: in the order of processes; the sizes are of each
  virtual void exchange(std::span<const std::byte> send, std::span<const int64_t> send_sizes, std::span<std::byte> receive,
                        std::span<const int64_t> receive_sizes) = 0;
  virtual void all_reduce(std::span<float> values) = 0;  // sums, in an order that depends on the number of processes

  // The same for dense f32 tensors, also on a GPU.
  void broadcast(const Tensor& values, int root);
  void all_reduce(const Tensor& values);
  // Process p has elements [begins[p], begins[p + 1]) of `values`, and gets the others.
  void all_gather(const Tensor& values, std::span<const int64_t> begins);
  // parts: of the elements of this process, one after another for process 0, 1, ... -> the parts that all have for this process, of
  // `count` elements each: those of process 0 first. parts_of: how many parts each process has
  Tensors exchange(const Tensors& parts, std::span<const int64_t> begins, std::span<const int64_t> parts_of);

  // The same for texts, whose lengths may differ.
  std::string broadcast(std::string text, int root);
  std::vector<std::string> all_gather(const std::string& own);  // of every process

 protected:
  // hosts: the machine of every process
  Group(int rank, std::vector<std::string> hosts);

 private:
  const int rank_, size_;
  const std::vector<std::string> hosts_;   // of every process
  std::unique_ptr<cuda::NcclGroup> gpus_;  // null: not connected
  Device connected_ = kCpu;
};

// The processes that mpirun, srun or the like started together with this one, after start_processes(); else this process alone.
Group& world();

// While such an object exists, world() is this process alone in this thread: for what the first process does without the others.
class WithoutOthers {
 public:
  WithoutOthers();
  ~WithoutOthers();
  WithoutOthers(const WithoutOthers&) = delete;
  WithoutOthers& operator=(const WithoutOthers&) = delete;
};

// The number of processes that a launcher has started, from its environment variables. 1 without a launcher.
int launched_processes();

// Joins the processes of the launcher and shares the cores of each host among them, unless HEED_THREADS is set. From now on a process that
// is lost or hangs ends all others with a message.
void start_processes();

// Ends this process's part in the job; main() returns the result. error: a message, if exit_code is not 0. The message of the first process
// that failed is given to `print`, once. If the others still run after two seconds, they are ended.
int end_processes(int exit_code, const std::string& error, const std::function<void(const std::string& message)>& print);

// An error in every process if one of them has another value than process 0: with both values. what: "heed", "the instruction set"
void check_same(Group& group, const std::string& what, const std::string& value);

}  // namespace heed
