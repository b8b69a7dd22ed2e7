#include "heed/serve/run_watch.h"

#include "heed/core/thread.h"
#include "heed/serve/answer.h"
#include "heed/train/run_json.h"

namespace heed::serve {
namespace {

constexpr size_t kMostWatchers = 128;
constexpr auto kRound = std::chrono::milliseconds(200);
constexpr int64_t kRoundsBetweenStates = 5, kRoundsBetweenPings = 50;

std::string state_of_run(const Path& run) {
  if (is_running(run)) return "running";
  const std::optional<RunJson> about = read_run_json(run);
  return !about || about->state == "running" ? "interrupted" : about->state;
}

}  // namespace

RunWatch::RunWatch(std::function<bool()> stopping) : stopping_(std::move(stopping)) {
  thread_ = start_thread("the thread that watches runs", [this] { work(); });
}

RunWatch::~RunWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RunWatch::add(const ExchangePtr& exchange, Response head, const Path& run, const RunCursor& cursor) {
  const std::lock_guard lock(mutex_);
  require(watched_.size() < kMostWatchers, 429, "too many clients watch runs; try again later");
  exchange->begin(std::move(head));
  watched_.push_back({.exchange = exchange, .run = run, .cursor = cursor});
  wake_.notify_all();
}

void RunWatch::work() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    watched_.remove_if([&](Watched& each) {
      try {
        if (look(each)) return false;
      } catch (const std::exception& error) {
        each.exchange->write(sse_event(error_response(error).body, "error"));
      }
      each.exchange->end();
      return true;
    });
    if (watched_.empty())
      wake_.wait(lock, [&] { return ended_ || !watched_.empty(); });
    else
      wake_.wait_for(lock, kRound);
  }
}

bool RunWatch::look(Watched& watched) {
  if (stopping_() || watched.exchange->cancelled()) return false;
  if (watched.quiet_rounds % kRoundsBetweenStates == 0) {
    const std::string state = state_of_run(watched.run);
    if (state != watched.state) watched.exchange->write(sse_event(dump({{"state", state}}), "state", watched.cursor.text()));
    watched.state = state;
  }
  if (watched.quiet_rounds % kRoundsBetweenPings == kRoundsBetweenPings - 1) watched.exchange->write(": ping\n\n");
  ++watched.quiet_rounds;
  const std::string events = watched.cursor.next_events(watched.run);
  return events.empty() || watched.exchange->write(events);
}

}  // namespace heed::serve
