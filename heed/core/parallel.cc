// A pool of workers that spin for a short while and then sleep. Each thread has its own range of the tasks, the same one for ops of the
// same shape, so that what it wrote is still in its cache; threads that finish early take tasks of others. Every worker limits oneDNN to
// one thread, through OpenMP's thread-local setting.
#include "heed/core/parallel.h"

#include <sched.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <hwy/cache_control.h>

#include "heed/core/check.h"
#include "heed/core/interrupt.h"
#include "heed/core/parse.h"
#include "heed/core/thread.h"

// oneDNN links the OpenMP runtime; this is the only function of it used here.
extern "C" void omp_set_num_threads(int threads);

namespace heed {
namespace {

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Subnormals are slow and too small to matter: inside tasks they are zero.
class FlushToZero {
 public:
#if defined(__x86_64__)
  FlushToZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }  // flush results, read operands as zero
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushToZero() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (uint64_t{1} << 24)));
  }
  ~FlushToZero() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

thread_local bool inside_task = false;

int cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

int default_threads() {
  const char* set = std::getenv("HEED_THREADS");
  const std::string_view text = set == nullptr ? "" : set;
  if (text.empty()) return cores();
  const int threads = parse_number<int>(text).value_or(0);
  check<UsageError>(threads >= 1 && threads <= 1024, "HEED_THREADS is '", text, "', expected a number from 1 to 1024");
  return threads;
}

struct Job {
  void (*call)(const void*, int64_t) = nullptr;
  const void* body = nullptr;
  int64_t tasks = 0;
};

class ThreadPool {
 public:
  explicit ThreadPool(int threads)
      : threads_(threads),
        spin_(threads <= cores() ? std::chrono::microseconds(50) : std::chrono::microseconds(0)),
        ranges_(static_cast<size_t>(threads)) {
    // Signals are for the program's own threads: oneDNN's kernels may change the stack pointer, and a handler that ran on top of
    // one overwrote its buffers.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      workers_.reserve(static_cast<size_t>(threads));
      for (int i = 1; i < threads; ++i)
        workers_.push_back(start_thread("thread " + std::to_string(i + 1) + " of " + std::to_string(threads),
                                        [this, i] { work(static_cast<size_t>(i)); }));
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      end_workers();
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~ThreadPool() { end_workers(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // One job at a time. Opening the gate publishes it; when it is closed, threads that wake up late do not enter, so that no job waits for
  // them.
  void run(const Job& job) {
    const std::lock_guard lock(one_job_);
    job_ = job;
    for (int i = 0; i < threads_; ++i) {
      TaskRange& range = ranges_[static_cast<size_t>(i)];
      range.next.store(job.tasks * i / threads_, std::memory_order_relaxed);
      range.end = job.tasks * (i + 1) / threads_;
    }
    failed_.store(false, std::memory_order_relaxed);
    failure_ = nullptr;
    gate_.store(0, std::memory_order_release);
    round_.fetch_add(1);
    if (sleepers_.load() > 0) round_.notify_all();
    take_tasks(0);
    gate_.fetch_or(kClosed, std::memory_order_acq_rel);
    wait(gate_, [](uint32_t gate) { return gate == kClosed; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr uint32_t kClosed = 0x80000000;  // the other bits of the gate count the workers inside

  void end_workers() {
    stopping_.store(true);
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void work(size_t self) {
    omp_set_num_threads(1);
    const FlushToZero flush;
    for (uint32_t seen = 0; !stopping_.load();) {
      if (enter()) {
        take_tasks(self);
        if (gate_.fetch_sub(1, std::memory_order_acq_rel) == kClosed + 1) gate_.notify_one();
      }
      sleepers_.fetch_add(1);
      wait(round_, [&](uint32_t round) { return round != seen; });
      sleepers_.fetch_sub(1);
      seen = round_.load();
    }
  }

  bool enter() {
    uint32_t gate = gate_.load(std::memory_order_acquire);
    while (!(gate & kClosed))
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  // Until ready(value): spins for a while, then sleeps.
  template <class Ready>
  void wait(std::atomic<uint32_t>& watched, const Ready& ready) {
    const auto start = std::chrono::steady_clock::now();
    do {
      for (int i = 0; i < 64; ++i) {
        if (ready(watched.load(std::memory_order_acquire))) return;
        relax();
      }
    } while (std::chrono::steady_clock::now() - start < spin_);
    for (uint32_t now = watched.load(); !ready(now); now = watched.load()) watched.wait(now);
  }

  // The tasks of one thread that no other thread has taken.
  struct alignas(64) TaskRange {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void take_tasks(size_t self) {
    inside_task = true;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      TaskRange& range = ranges_[(self + i) % ranges_.size()];
      for (;;) {
        const int64_t task = range.next.fetch_add(1, std::memory_order_relaxed);
        if (task >= range.end || failed_.load(std::memory_order_relaxed)) break;
        try {
          job_.call(job_.body, task);
        } catch (...) {
          const std::lock_guard lock(failure_mutex_);
          if (!failure_) failure_ = std::current_exception();
          failed_.store(true, std::memory_order_relaxed);
        }
      }
    }
    inside_task = false;
    hwy::FlushStream();  // makes non-temporal stores of tasks visible
  }

  const int threads_;
  const std::chrono::microseconds spin_;
  std::mutex one_job_, failure_mutex_;
  Job job_;
  std::exception_ptr failure_;
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<uint32_t> gate_{kClosed};
  std::atomic<bool> failed_{false};
  std::vector<TaskRange> ranges_;
  std::vector<std::thread> workers_;
};

std::unique_ptr<ThreadPool>& thread_pool() {
  static std::unique_ptr<ThreadPool> instance = std::make_unique<ThreadPool>(default_threads());
  return instance;
}

}  // namespace

int thread_count() { return thread_pool()->threads(); }

void set_thread_count(int threads) {
  check(threads >= 1 && threads <= 1024, "set_thread_count: ", threads, " threads, expected 1 to 1024");
  if (threads != thread_count()) thread_pool() = std::make_unique<ThreadPool>(threads);
}

StayInThread::StayInThread() : before_(inside_task) {
  omp_set_num_threads(1);
  inside_task = true;
}
StayInThread::~StayInThread() { inside_task = before_; }

void detail::run_tasks(int64_t tasks, void (*call)(const void*, int64_t), const void* body) {
  if (tasks <= 0) return;
  const FlushToZero flush;
  if (inside_task) {
    for (int64_t task = 0; task < tasks; ++task) call(body, task);
    return;
  }
  check_interrupt();
  thread_local const bool alone = (omp_set_num_threads(1), true);
  (void)alone;
  if (tasks == 1 || thread_count() == 1) {
    for (int64_t task = 0; task < tasks; ++task) call(body, task);
    return;
  }
  thread_pool()->run({call, body, tasks});
}

}  // namespace heed
