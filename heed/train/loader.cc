#include "heed/train/loader.h"

#include "heed/core/parallel.h"
#include "heed/core/thread.h"

namespace heed {

Loader::Loader(std::vector<std::vector<int64_t>> batches, size_t first, Make make, int64_t threads, size_t ahead)
    : batches_(std::move(batches)), make_(std::move(make)), ahead_(ahead), waiting_(ahead), taken_(first), begun_(first) {
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
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::work() {
  const StayInThread here;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return over_ || begun_ == batches_.size() || begun_ - taken_ < ahead_; });
    if (over_ || begun_ == batches_.size()) return;
    const size_t mine = begun_++;
    lock.unlock();
    Made made;
    try {
      made.batch = make_(batches_[mine]);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.ready = true;
    lock.lock();
    waiting_[mine % ahead_] = std::move(made);
    changed_.notify_all();
  }
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  check(taken_ < batches_.size(), "loader: all ", batches_.size(), " batches are taken");
  if (threads_.empty()) return make_(batches_[taken_++]);
  Made& place = waiting_[taken_ % ahead_];
  changed_.wait(lock, [&] { return place.ready; });
  Made made = std::exchange(place, {});
  ++taken_;
  changed_.notify_all();
  if (made.error) std::rethrow_exception(made.error);
  return std::move(made.batch);
}

}  // namespace heed
