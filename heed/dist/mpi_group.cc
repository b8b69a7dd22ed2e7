// Processes over MPI. A waiting process tests for the end of an operation and yields its core, instead of blocking in it.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "heed/dist/cores.h"
#include "heed/dist/launcher.h"
#include "heed/dist/mpi_end_launcher.h"
#include "heed/dist/mpi_heartbeat.h"
#include "heed/dist/task_thread.h"

namespace heed {
namespace {

using MpiClock = std::chrono::steady_clock;

constexpr MpiClock::duration kBusy = std::chrono::milliseconds(20), kForever = std::chrono::hours(10000);

// busy: how long it tests without a pause. Returns false if the time limit passed first.
bool wait_for(MPI_Request request, MpiClock::duration busy = kBusy, MpiClock::duration limit = kForever) {
  const MpiClock::time_point start = MpiClock::now();
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return true;
    const auto waited = MpiClock::now() - start;
    if (waited > limit) return false;
    if (waited < busy)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// MPI counts are 32 bits wide: large blocks are counted in units of 4 bytes where possible.
struct Counts {
  std::vector<int> sizes, begins;
  MPI_Datatype type;
};

int as_int(int64_t count) {
  check(count <= INT32_MAX, "group: ", count, " elements in one message, expected at most ", INT32_MAX);
  return static_cast<int>(count);
}

bool divides(std::span<const int64_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size % 4 == 0; });
}

Counts counts_of(std::span<const int64_t> sizes, bool words) {
  Counts out{.sizes = {}, .begins = {}, .type = words ? MPI_FLOAT : MPI_BYTE};
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    const int64_t count = words ? size / 4 : size;
    out.sizes.push_back(as_int(count));
    out.begins.push_back(as_int(begin));
    begin += count;
  }
  return out;
}

class MpiGroup : public Group {
 public:
  // busy: of wait_for
  MpiGroup(int rank, const std::vector<std::string>& hosts, MpiClock::duration busy) : Group(rank, hosts), busy_(busy) {
    MPI_Comm_dup(MPI_COMM_WORLD, &data_);
    MPI_Comm_dup(MPI_COMM_WORLD, &ending_);
  }
  // The other threads need the cores, so this one pauses more.
  void add_background(const std::vector<std::string>& hosts) {
    background_ = std::make_unique<MpiGroup>(rank(), hosts, std::chrono::microseconds(200));
  }
  Group* background() override { return background_.get(); }
  using Group::all_gather;
  using Group::all_reduce;
  using Group::broadcast;
  using Group::exchange;

  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(data_, &request);
    wait_for(request, busy_);
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    constexpr size_t most = size_t{1} << 30;
    for (size_t begin = 0; begin < bytes.size(); begin += most) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ibcast(bytes.data() + begin, static_cast<int>(std::min(most, bytes.size() - begin)), MPI_BYTE, root, data_, &request);
      wait_for(request, busy_);
    }
  }
  void all_gather(std::span<const std::byte> own, std::span<std::byte> all, std::span<const int64_t> sizes) override {
    const Counts counts = counts_of(sizes, divides(sizes));
    const bool in_place = own.data() >= all.data() && own.data() < all.data() + all.size();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgatherv(in_place ? MPI_IN_PLACE : own.data(), counts.sizes[static_cast<size_t>(rank())], counts.type, all.data(),
                    counts.sizes.data(), counts.begins.data(), counts.type, data_, &request);
    wait_for(request, busy_);
  }
  void exchange(std::span<const std::byte> send, std::span<const int64_t> send_sizes, std::span<std::byte> receive,
                std::span<const int64_t> receive_sizes) override {
    const bool words = divides(send_sizes) && divides(receive_sizes);
    const Counts from = counts_of(send_sizes, words), to = counts_of(receive_sizes, words);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoallv(send.data(), from.sizes.data(), from.begins.data(), from.type, receive.data(), to.sizes.data(), to.begins.data(),
                   to.type, data_, &request);
    wait_for(request, busy_);
  }
  void all_reduce(std::span<float> values) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, values.data(), as_int(std::ssize(values)), MPI_FLOAT, MPI_SUM, data_, &request);
    wait_for(request, busy_);
  }

  // The exit codes of all processes, or nothing if some of them have not ended within the limit.
  std::vector<int> exit_codes(int own, std::chrono::milliseconds limit) {
    // Never destroyed: after the limit, the thread of the heartbeat may still complete the exchange.
    std::vector<int>& codes = *new std::vector<int>(static_cast<size_t>(size()));
    const int& sent = *new int(own);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&sent, 1, MPI_INT, codes.data(), 1, MPI_INT, ending_, &request);
    return wait_for(request, busy_, limit) ? codes : std::vector<int>();
  }

 private:
  const MpiClock::duration busy_;
  std::unique_ptr<MpiGroup> background_ = {};
  MPI_Comm data_ = MPI_COMM_NULL, ending_ = MPI_COMM_NULL;  // ending_: messages that cannot be mistaken for those of an unfinished exchange
};

std::unique_ptr<MpiGroup> mpi_world;
std::unique_ptr<Heartbeat> heartbeat;

std::vector<std::string> hosts_of_all(int size) {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> names(static_cast<size_t>(size) * MPI_MAX_PROCESSOR_NAME);
  MPI_Allgather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> out;
  for (int p = 0; p < size; ++p) out.emplace_back(names.data() + static_cast<size_t>(p) * MPI_MAX_PROCESSOR_NAME);
  return out;
}

}  // namespace

Group& launched_group() { return *mpi_world; }
bool is_launched() { return mpi_world != nullptr; }

void start_processes() {
  if (mpi_world) return;
  int provided = 0, rank = 0, size = 1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are not for MPI's threads
  const bool started = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  check(started, "mpi: cannot start");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::vector<std::string> hosts = hosts_of_all(size);
  mpi_world = std::make_unique<MpiGroup>(rank, hosts, kBusy);
  share_cores(*mpi_world);
  if (provided != MPI_THREAD_MULTIPLE || size == 1) return;
  mpi_world->add_background(hosts);
  heartbeat = std::make_unique<Heartbeat>(*mpi_world);
}

int end_processes(int exit_code, const std::string& error, const std::function<void(const std::string& message)>& print) {
  if (!mpi_world) {
    if (exit_code != 0) print(error);
    return exit_code;
  }
  const std::vector<int> codes =
      mpi_world->exit_codes(exit_code, exit_code == 0 ? std::chrono::hours(10000) : std::chrono::milliseconds(2000));
  const auto first = std::find_if(codes.begin(), codes.end(), [](int code) { return code != 0; });
  if (codes.empty() || (first != codes.end() && first - codes.begin() == mpi_world->rank()))
    print(mpi_world->is_first() ? error : mpi_world->name_of(mpi_world->rank()) + ": " + error);
  std::cout.flush();
  if (codes.empty()) abort_processes(exit_code);
  if (TaskThread::is_left_behind() && first != codes.end()) {           // MPI cannot end while a thread is in it
    mpi_world->exit_codes(exit_code, std::chrono::milliseconds(2000));  // the message is printed meanwhile
    abort_processes(*first);
  }
  heartbeat.reset();
  MPI_Finalize();
  return first == codes.end() ? 0 : *first;
}

void abort_processes(int exit_code) {
  end_launcher_after(6);
  alarm(5);  // in case MPI cannot reach the others either
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace heed
