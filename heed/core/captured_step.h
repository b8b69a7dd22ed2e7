// A step that is repeated with the same shapes: the first runs are normal, then it is captured as a CUDA graph. Launching a graph of 300
// small kernels takes a quarter of the time of launching them one by one.
#pragma once

#include <functional>
#include <optional>

#include "heed/core/api.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "heed/cuda/graph.h"

namespace HEED_API heed {

class CapturedStep {
 public:
  // work: reads its inputs from the same tensors every time, copies nothing to the host, and returns its results. rng: its random numbers.
  // takes_memory: false if all its tensors exist already; then one normal run is enough. Otherwise every run writes to memory that `work`
  // took and freed while it was recorded: device tensors that are made after the recording must not be needed after the next run.
  CapturedStep(Device device, Rng* rng, std::function<Tensors()> work, bool takes_memory = true);

  // The results: the same tensors in every run once the step is recorded.
  const Tensors& run();
  bool is_recorded() const { return graph_.has_value(); }
  bool failed_to_record() const { return failed_; }  // then run() has thrown, and the step was not executed

 private:
  void record();

  Device device_;
  Rng* rng_;
  std::function<Tensors()> work_;
  bool takes_memory_;
  Tensors results_ = {};
  int runs_ = 0;
  bool failed_ = false;
  std::optional<cuda::Graph> graph_ = {};
  Tensor advance_ = {};  // one i64 on the device: added to the captured random number streams in every run
  uint64_t first_stream_ = 0, streams_ = 0;
};

}  // namespace heed
