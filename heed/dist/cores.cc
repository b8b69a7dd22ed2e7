#include "heed/dist/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "heed/core/parallel.h"

namespace heed {
namespace {

// Unless another binding is requested, Open MPI binds each process to one core if there are one or two, and to a socket if there are more.
// This suits programs with one thread. heed uses all cores that the machine or the job has.
void undo_default_binding() {
  if (std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE") == nullptr) return;
  for (const char* chosen :
       {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy", "OMPI_MCA_rmaps_base_cpus_per_rank"})
    if (std::getenv(chosen) != nullptr) return;
  cpu_set_t every;
  std::fill_n(reinterpret_cast<unsigned char*>(&every), sizeof every, static_cast<unsigned char>(0xFF));
  sched_setaffinity(0, sizeof every, &every);  // the system keeps those that the job may use
}

std::string own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::string out;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    for (size_t i = 0; i < CPU_SETSIZE; ++i) out += CPU_ISSET(i, &cores) ? '1' : '0';
  return out;
}

bool overlap(const std::string& a, const std::string& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] == '1' && b[i] == '1') return true;
  return false;
}

}  // namespace

void share_cores(Group& group) {
  undo_default_binding();
  const std::string mine = own_cores();
  const std::vector<std::string> all = group.all_gather(mine);
  int sharing = 0;
  for (int p = 0; p < group.size(); ++p)
    sharing += p == group.rank() || (group.host(p) == group.host(group.rank()) && overlap(all[static_cast<size_t>(p)], mine));
  const char* const set = std::getenv("HEED_THREADS");
  if (set != nullptr && *set != '\0') return;
  set_thread_count(std::max(1, static_cast<int>(std::count(mine.begin(), mine.end(), '1')) / sharing));
}

}  // namespace heed
