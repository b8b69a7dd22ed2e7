// Runs the shards of a process in lockstep: every shard has a thread for its forward and backward, and only one thread runs at a time. A
// thread that needs numbers of all shards, for batch norm for example, waits for them and lets the next thread run. A batch in shards then
// takes as much memory as an undivided batch.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "heed/dist/group.h"
#include "heed/ops/batch_shards.h"

namespace heed {

class Lockstep {
 public:
  // enter, leave: called before and after each turn of a shard, to swap state that shards must not share
  using Turn = std::function<void(size_t shard)>;
  Lockstep(Group& group, Turn enter, Turn leave) : group_(group), enter_(std::move(enter)), leave_(std::move(leave)) {}

  // Runs body(shard, shards) for each of `count` shards of this process. All processes must call this function, even those without shards.
  // Rethrows the first error.
  void run(size_t count, const std::function<void(size_t shard, BatchShards& shards)>& body);

 private:
  using Numbers = std::vector<double>;

  struct Runner : BatchShards {
    Runner(Lockstep& all, size_t shard) : all_(all), shard_(shard) {}
    std::vector<Numbers> all_of(const Numbers& own) override;
    size_t place() const override { return place_; }
    bool is_first_here() const override { return shard_ == 0; }

    Lockstep& all_;
    const size_t shard_;
    size_t place_ = 0;
    bool has_turn_ = false, done_ = false;
    Numbers own_ = {};
    std::exception_ptr failure_ = {};
  };

  void give_turn(Runner& runner);
  void wait_for_turn(Runner& runner);
  bool collect(const std::vector<std::unique_ptr<Runner>>& runners);  // false: no shard of any process waits

  Group& group_;
  const Turn enter_, leave_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Numbers> collected_ = {};
  bool ending_ = false;  // because of an error
};

}  // namespace heed
