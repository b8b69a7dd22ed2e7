#include "heed/train/loader.h"

#include "heed/core/parallel.h"

namespace heed {

Loader::Loader(std::vector<std::vector<int64_t>> batches, size_t first, Make make, int64_t threads, size_t ahead)
    : batches_(std::move(batches)), make_(std::move(make)), ahead_(ahead), taken_(first), begun_(first) {
  check(threads >= 0 && ahead > 0, "loader: ", threads, " threads, ", ahead, " batches ahead, expected at least 0 and 1");
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Loader::~Loader() {
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
    waiting_.emplace_back();
    lock.unlock();
    Made made;
    try {
      made.batch = make_(batches_[mine]);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.ready = true;
    lock.lock();
    waiting_[mine - taken_] = std::move(made);
    changed_.notify_all();
  }
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  check(taken_ < batches_.size(), "loader: all ", batches_.size(), " batches are taken");
  if (threads_.empty()) return make_(batches_[taken_++]);
  changed_.wait(lock, [&] { return !waiting_.empty() && waiting_.front().ready; });
  Made made = std::move(waiting_.front());
  waiting_.pop_front();
  ++taken_;
  changed_.notify_all();
  if (made.error) std::rethrow_exception(made.error);
  return std::move(made.batch);
}

}  // namespace heed
