#include "heed/train/lockstep.h"

#include <algorithm>
#include <memory>

#include "heed/core/thread.h"
#include "heed/dist/split_work.h"

namespace heed {

void Lockstep::wait_for_turn(Runner& runner) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return runner.has_turn_; });
  lock.unlock();
  check(!ending_, "a shard of the same batch has failed");
}

std::vector<Lockstep::Numbers> Lockstep::Runner::all_of(const Numbers& own) {
  {
    const std::lock_guard lock(all_.mutex_);
    own_ = own;
    has_turn_ = false;
    all_.changed_.notify_all();
  }
  all_.wait_for_turn(*this);
  return all_.collected_;
}

// Returns when the shard waits again or is done.
void Lockstep::give_turn(Runner& runner) {
  enter_(runner.shard_);
  std::unique_lock lock(mutex_);
  runner.own_.clear();
  runner.has_turn_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !runner.has_turn_; });
  lock.unlock();
  leave_(runner.shard_);
}

bool Lockstep::collect(const std::vector<std::unique_ptr<Runner>>& runners) {
  Numbers own;  // of each waiting shard: how many, and the numbers
  for (const auto& runner : runners) {
    if (runner->done_) continue;
    own.push_back(static_cast<double>(runner->own_.size()));
    own.insert(own.end(), runner->own_.begin(), runner->own_.end());
  }
  collected_.clear();
  const std::vector<std::string> all = group_.all_gather(bytes_of_numbers(own));
  for (size_t process = 0; process < all.size(); ++process) {
    if (static_cast<int>(process) == group_.rank()) {
      size_t place = collected_.size();
      for (const auto& runner : runners)
        if (!runner->done_) runner->place_ = place++;
    }
    const Numbers theirs = numbers_in<double>(all[process]);
    for (auto at = theirs.begin(); at != theirs.end(); at += static_cast<int64_t>(collected_.back().size()) + 1)
      collected_.emplace_back(at + 1, at + 1 + static_cast<int64_t>(*at));
  }
  return !collected_.empty();
}

void Lockstep::run(size_t count, const std::function<void(size_t shard, BatchShards& shards)>& body) {
  std::vector<std::unique_ptr<Runner>> runners;
  std::vector<std::thread> threads;
  const auto run_shard = [&](Runner& runner) {
    try {
      wait_for_turn(runner);
      body(runner.shard_, runner);
    } catch (...) {
      runner.failure_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    runner.done_ = true;
    runner.has_turn_ = false;
    changed_.notify_all();
  };
  const auto failed = [&] {
    return std::find_if(runners.begin(), runners.end(), [](const auto& runner) { return runner->failure_ != nullptr; });
  };
  std::exception_ptr failure;
  try {
    for (size_t shard = 0; shard < count; ++shard) {
      runners.push_back(std::make_unique<Runner>(*this, shard));
      threads.push_back(start_thread("the thread of a shard", [&run_shard, &runner = *runners.back()] { run_shard(runner); }));
    }
    do {
      for (const auto& runner : runners)
        if (!runner->done_) give_turn(*runner);
    } while (failed() == runners.end() && collect(runners));
    if (const auto first = failed(); first != runners.end()) failure = (*first)->failure_;
  } catch (...) {
    failure = std::current_exception();
  }
  ending_ = failure != nullptr;
  for (size_t shard = 0; shard < threads.size(); ++shard) {
    if (!runners[shard]->done_) give_turn(*runners[shard]);
    threads[shard].join();
  }
  ending_ = false;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace heed
