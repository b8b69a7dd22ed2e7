// Streams of /api/runs/.../events. One thread reads the files of all runs that are watched.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "heed/serve/http.h"
#include "heed/serve/run_files.h"

namespace heed::serve {

class RunWatch {
 public:
  explicit RunWatch(std::function<bool()> stopping);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  // Begins the answer with `head`. A 429 if there are too many.
  void add(const ExchangePtr& exchange, Response head, const Path& run, const RunCursor& cursor);

 private:
  struct Watched {
    ExchangePtr exchange;
    Path run;
    RunCursor cursor;
    std::string state = {};
    int64_t quiet_rounds = 0;
  };
  void work();
  bool look(Watched& watched);  // sends what is new; false: the stream has ended

  const std::function<bool()> stopping_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Watched> watched_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace heed::serve
