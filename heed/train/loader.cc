#include "heed/train/loader.h"

#include "heed/core/parallel.h"
#include "heed/core/thread.h"

namespace heed {

Loader::Loader(std::vector<std::vector<int64_t>> batches, size_t first, Make make, int64_t threads, size_t ahead)
    : batches_(std::move(batches)), make_(std::move(make)), ahead_(ahead), slots_(ahead), taken_(first), started_(first) {
  check(threads >= 0 && ahead > 0, "loader: ", threads, " threads, ", ahead, " batches ahead, expected at least 0 and 1");
  threads_.reserve(static_cast<size_t>(threads));
  try {
    for (int64_t i = 0; i < threads; ++i) threads_.push_back(start_thread("a thread that loads batches", [this] { work(); }));
  } catch (...) {
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::work() {
  const StayInThread here;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || started_ == batches_.size() || started_ - taken_ < ahead_; });
    if (stopping_ || started_ == batches_.size()) return;
    const size_t mine = started_++;
    lock.unlock();
    Slot built;
    try {
      built.batch = make_(batches_[mine]);
    } catch (...) {
      built.error = std::current_exception();
    }
    built.ready = true;
    lock.lock();
    slots_[mine % ahead_] = std::move(built);
    changed_.notify_all();
  }
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  check(taken_ < batches_.size(), "loader: all ", batches_.size(), " batches are taken");
  if (threads_.empty()) return make_(batches_[taken_++]);
  Slot& slot = slots_[taken_ % ahead_];
  changed_.wait(lock, [&] { return slot.ready; });
  Slot built = std::exchange(slot, {});
  ++taken_;
  changed_.notify_all();
  if (built.error) std::rethrow_exception(built.error);
  return std::move(built.batch);
}

}  // namespace heed
