// L42: heads split the same arithmetic. What happens to time with more heads and more threads.
#include <algorithm>

#include "heed/attention/attention.h"
#include "heed/core/parallel.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct ParallelHeadsOptions {
  int64_t tokens = 512, width = 256, most_heads = 16, threads = 16, rounds = 5;
  uint64_t seed = 1;
};

void declare_parallel_heads(Settings& settings, ParallelHeadsOptions& options, Size size) {
  if (size == Size::full) options.tokens = 1024, options.width = 1024, options.rounds = 9;
  settings.add("tokens", options.tokens, "number of tokens", {.least = 16, .most = 16384});
  settings.add("width", options.width, "of all heads together", {.least = 32, .most = 4096});
  settings.add("most_heads", options.most_heads, "1, 2, 4, ... heads up to this", {.least = 1, .most = 64});
  settings.add("threads", options.threads, "1, 2, 4, ... threads up to this, and up to the cores", {.least = 1, .most = 256});
  settings.add("rounds", options.rounds, "of timing", {.least = 1, .most = 100});
  settings.add("seed", options.seed, "of the random tokens");
}

class ThreadCount {
 public:
  ThreadCount() : before_(thread_count()) {}
  ~ThreadCount() { set_thread_count(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  int before() const { return before_; }

 private:
  int before_;
};

Report run_parallel_heads(const ParallelHeadsOptions& options, const ProgressCallback& progress) {
  const NoGrad no_grad;
  const int64_t N = options.tokens, D = options.width;
  std::vector<int64_t> heads, threads;
  for (int64_t h = 1; h <= options.most_heads && D % h == 0; h *= 2) heads.push_back(h);
  const ThreadCount restore;
  for (int64_t t = 1; t <= std::min<int64_t>(options.threads, restore.before()); t *= 2) threads.push_back(t);
  Rng rng(options.seed);
  const Device gpu = default_device();  // with full=true; the CPU if there is none
  std::vector<std::function<void()>> functions, on_gpu;
  Report report;
  double least = INFINITY, most = 0;
  for (const int64_t h : heads) {
    const auto draw = [&] { return random_normal({1, h, N, D / h}, 0, 1, rng, kCpu); };
    const Tensor q = draw(), k = draw(), v = draw();
    functions.emplace_back([q, k, v] { attention(q, k, v); });
    if (gpu != kCpu)  // reading a number waits for the kernels
      on_gpu.emplace_back([q = q.to(gpu), k = k.to(gpu), v = v.to(gpu)] { sum(attention(q, k, v)).item(); });
    const WorkCount count;
    attention(q, k, v);
    const auto work = static_cast<double>(count.multiply_adds());
    least = std::min(least, work), most = std::max(most, work);
    report.measured.push_back(
        equal_to(std::to_string(h) + (h == 1 ? " head" : " heads") + ": multiply-adds, 2 N² D", 2 * static_cast<double>(N * N * D), work));
  }
  Table table{.title = "Milliseconds", .columns = {"heads"}};
  Lines lines{.across = {"heads", true}, .up = {"milliseconds", true}};
  std::vector<std::vector<double>> seconds;  // by threads and heads
  for (const int64_t t : threads) {
    progress(std::to_string(t) + " threads");
    set_thread_count(static_cast<int>(t));
    seconds.push_back(median_seconds(functions, static_cast<int>(options.rounds)));
    table.columns.push_back(std::to_string(t) + (t == 1 ? " thread" : " threads"));
    Series series{.name = table.columns.back(), .mark = Mark::both};
    for (size_t i = 0; i < heads.size(); ++i)
      series.x.push_back(static_cast<double>(heads[i])), series.y.push_back(1e3 * seconds.back()[i]);
    lines.series.push_back(std::move(series));
  }
  std::vector<double> gpu_seconds;
  if (!on_gpu.empty()) {
    progress("GPU");
    gpu_seconds = median_seconds(on_gpu, static_cast<int>(options.rounds));
    table.columns.emplace_back("GPU");
    Series series{.name = "GPU", .mark = Mark::both};
    for (size_t i = 0; i < heads.size(); ++i) series.x.push_back(static_cast<double>(heads[i])), series.y.push_back(1e3 * gpu_seconds[i]);
    lines.series.push_back(std::move(series));
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    table.rows.push_back({static_cast<double>(heads[i])});
    for (const std::vector<double>& each : seconds) table.rows.back().push_back(1e3 * each[i]);
    if (!gpu_seconds.empty()) table.rows.back().push_back(1e3 * gpu_seconds[i]);
  }
  report.measured.push_back(equal_to("most multiply-adds relative to fewest", 1, most / least));
  // Speed-up from all threads, for one head and for the most heads: heads are not needed to use the cores.
  const double one = seconds[0][0] / seconds.back()[0], many = seconds[0].back() / seconds.back().back();
  const auto heads_text = [](int64_t h) { return std::to_string(h) + (h == 1 ? " head" : " heads"); };
  report.statement =
      "Any number of heads does the same arithmetic, $2 N^2 D$ multiply-adds. " +
      (threads.size() == 1 ? std::string("Time was measured with one thread only, which cannot show what more threads save. ")
                           : "On this machine one head runs " + about_text(one) + " times as fast with " + std::to_string(threads.back()) +
                                 " threads as with one, " + heads_text(heads.back()) + " " + about_text(many) + " times. ") +
      "Heads are independent, but so are blocks of queries: a kernel that splits both ways needs no heads to fill the cores. "
      "Narrow heads cost more, as the softmax of N² numbers is computed once per head.";
  if (!gpu_seconds.empty())
    report.statement +=
        " On the GPU " + heads_text(heads.back()) + " take " + about_text(gpu_seconds.back() / gpu_seconds[0]) + " times as long as one.";
  if (heads.size() > 2)
    report.measured.push_back(
        by_clock(at_least("one thread: time of the most heads relative to one", 0.9, seconds[0].back() / seconds[0][0])));
  report.tables.push_back(std::move(table));
  report.figures.push_back(
      figure("Time of attention by heads and threads", "The arithmetic is the same at every point.", Plot{.body = std::move(lines)}));
  return report;
}

}  // namespace

Experiment parallel_heads() {
  return {.number = "L42",
          .name = "parallel-heads",
          .topic = Topic::cost,
          .title = "Heads, threads and time",
          .claim = "Heads divide the same arithmetic into independent parts; they neither add nor save any.",
          .formula = R"(H \cdot 2 N^2 \frac{D}{H} = 2 N^2 D)",
          .setup =
              "Attention of the same total width is computed with different numbers of heads and threads. Multiply-adds are counted, and "
              "times are measured by the clock, with full=true also on a GPU, if there is one.",
          .gpu = true,
          .prepare = prepared(declare_parallel_heads, run_parallel_heads)};
}

}  // namespace heed::lab
