#include "heed/core/dry_run.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "heed/core/check.h"

namespace heed {

struct DryRun::Counts {  // outlives the dry run if tensors do
  std::atomic<int64_t> in_use{0}, peak{0};
};

thread_local const DryRun* DryRun::newest_ = nullptr;

DryRun::DryRun() : before_(newest_), counts_(std::make_shared<Counts>()) { newest_ = this; }
DryRun::~DryRun() { newest_ = before_; }

int64_t DryRun::in_use() const { return counts_->in_use; }
int64_t DryRun::peak() const { return counts_->peak; }
void DryRun::reset_peak() { counts_->peak = counts_->in_use.load(); }

// Pages are allocated on first access.
std::shared_ptr<std::byte> DryRun::take(int64_t bytes) const {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  constexpr int64_t within_reach = int64_t{1} << 40;  // addresses that every machine has, unless it runs out of memory
  if (pages == MAP_FAILED && bytes < within_reach) throw std::bad_alloc();
  check(pages != MAP_FAILED, "dry run: no addresses for ", bytes, " bytes");
  const int64_t held = pool_bytes(bytes);
  counts_->peak = std::max<int64_t>(counts_->peak, counts_->in_use += held);
  return {static_cast<std::byte*>(pages), [size, held, counts = counts_](std::byte* block) {
            munmap(block, size);
            counts->in_use -= held;
          }};
}

}  // namespace heed
