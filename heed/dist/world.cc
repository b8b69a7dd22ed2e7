// This process alone, and the variables by which launchers say how many processes they have started.
#include <unistd.h>
#include <cstdlib>

#include <algorithm>

#include "heed/core/parse.h"
#include "heed/dist/launcher.h"

namespace heed {
namespace {

class OneProcess : public Group {
 public:
  OneProcess() : Group(0, {"localhost"}) {}
  using Group::all_gather;
  using Group::all_reduce;
  using Group::broadcast;
  using Group::exchange;

  void barrier() override {}
  void broadcast(std::span<std::byte>, int) override {}
  void all_gather(std::span<const std::byte> own, std::span<std::byte> all, std::span<const int64_t>) override {
    if (own.data() != all.data()) std::copy(own.begin(), own.end(), all.begin());
  }
  void exchange(std::span<const std::byte> send, std::span<const int64_t>, std::span<std::byte> receive,
                std::span<const int64_t>) override {
    std::copy(send.begin(), send.end(), receive.begin());
  }
  void all_reduce(std::span<float>) override {}
};

thread_local int without_others = 0;

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : parse_number<int>(text).value_or(0);
}

}  // namespace

WithoutOthers::WithoutOthers() { ++without_others; }
WithoutOthers::~WithoutOthers() { --without_others; }

Group& world() {
  static OneProcess alone;
  return is_launched() && without_others == 0 ? launched_group() : alone;
}

// Open MPI's mpirun, MPICH's and Intel's, and srun with one of its MPI plugins: without one, SLURM's tasks are separate programs.
int launched_processes() {
  if (const int size = number_in("OMPI_COMM_WORLD_SIZE"); size > 0) return size;
  if (const int size = number_in("PMI_SIZE"); size > 0) return size;
  if (std::getenv("PMIX_RANK") != nullptr) return std::max(1, number_in("SLURM_NTASKS"));
  return 1;
}

}  // namespace heed
