#include "heed/models/cost_run.h"

#include <algorithm>
#include <chrono>

#include "heed/core/dry_run.h"
#include "heed/core/work_count.h"

namespace heed {
namespace {

Model copy_for(const Model& model, Purpose purpose) {
  return rebuild(model, purpose == Purpose::training ? Weights::trainable : Weights::packed);
}

// in_use, peak, reset: functions of the memory counter. before: bytes in use before the model was built
template <class InUse, class Peak, class Reset>
MemoryCost memory_of_call(const Model& model, int64_t before, const InputSize& size, Purpose purpose, const InUse& in_use, const Peak& peak,
                          const Reset& reset) {
  MemoryCost out{.weights = in_use() - before};
  reset();
  run_example(model, size, purpose);
  out.activations = peak() - before - out.weights;
  out.gradients = in_use() - before - out.weights;
  return out;
}

}  // namespace

MemoryCost predicted_memory(const Model& model, const InputSize& size, Purpose purpose) {
  return within_limits([&] {
    DryRun dry;
    const Model copy = copy_for(model, purpose);
    return memory_of_call(
        copy, 0, size, purpose, [&] { return dry.in_use(); }, [&] { return dry.peak(); }, [&] { dry.reset_peak(); });
  });
}

MeasuredCost measured_cost(const Model& model, const InputSize& size, Purpose purpose, int rounds) {
  const int64_t before = memory_use(kCpu).in_use;
  const Model copy = copy_for(model, purpose);
  MeasuredCost out{.memory = memory_of_call(
                       copy, before, size, purpose, [] { return memory_use(kCpu).in_use; }, [] { return memory_use(kCpu).peak; },
                       [] { reset_peak_memory(kCpu); })};
  {
    const WorkCount count;
    run_example(copy, size, purpose);
    out.multiply_adds = count.multiply_adds();
  }
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run_example(copy, size, purpose);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  out.seconds = seconds.empty() ? 0 : seconds[seconds.size() / 2];
  return out;
}

}  // namespace heed
